/** Refused input in plain words: zod's own texts, such as "Invalid input: expected number", never reach a person. */

/** What zod reports about one value. A structural type, because base imports no library. */
export type InputIssue = {
  readonly code?: string | undefined;
  readonly message: string;
  readonly expected?: unknown;
  readonly origin?: unknown;
  readonly minimum?: unknown;
  readonly maximum?: unknown;
  readonly inclusive?: unknown;
  readonly values?: readonly unknown[];
  readonly format?: unknown;
  readonly keys?: readonly string[];
};

/** Unknown fields that are named. */
const maxNamed = 10;

/** How the texts of zod's default locale begin; other texts come from our schemas. */
const isDefaultText = /^(Invalid|Too (small|big)|Unrecognized)\b/;

const types: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  map: 'an object',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  string: 'a string',
};

const units: Readonly<Record<string, string>> = { string: 'characters', array: 'entries', set: 'entries' };

const formats: Readonly<Record<string, string>> = {
  datetime: 'an RFC 3339 timestamp',
  email: 'an email address',
  url: 'a URL',
};

/**
 * What is wrong: with a subject a sentence such as `ttl must be a number`, without one its second half, `must be a
 * number`. The texts of our own schemas stay as they are.
 */
export function describeIssue(issue: InputIssue, subject?: string): string {
  if (!isDefaultIssue(issue)) return issue.message;
  if (issue.code === 'unrecognized_keys') {
    const unknown = unknownFields(issue.keys ?? []);
    return subject === undefined ? `has ${unknown}` : unknown;
  }
  const predicate = predicateOf(issue);
  return subject === undefined ? predicate : `${subject} ${predicate}`;
}

/** Whether the text comes from zod and not from our own schemas. */
export function isDefaultIssue({ message }: InputIssue): boolean {
  return isDefaultText.test(message);
}

function predicateOf(issue: InputIssue): string {
  const { code, message, expected, values = [], format } = issue;
  switch (code) {
    case 'invalid_type':
      if (/received undefined$/.test(message)) return 'is missing';
      return `must be ${types[String(expected)] ?? String(expected)}`;
    case 'invalid_value':
      return `must be ${values.length === 1 ? '' : 'one of '}${values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      return limit('at least', issue.minimum, issue);
    case 'too_big':
      return limit('at most', issue.maximum, issue);
    case 'invalid_format':
      return formats[String(format)] === undefined
        ? 'has an invalid format'
        : `must be ${formats[String(format)]}`;
    default:
      return 'is invalid';
  }
}

/** Does not repeat a key that is not a plausible name, because it may be a secret in the wrong place. */
function unknownFields(keys: readonly string[]): string {
  const names = keys
    .slice(0, maxNamed)
    .map((key) => (/^[A-Za-z][\w.-]{0,30}$/.test(key) ? `"${key}"` : '(not a name)'));
  const more = keys.length > maxNamed ? ` and ${keys.length - maxNamed} more` : '';
  return `unknown field${keys.length === 1 ? '' : 's'} ${names.join(', ')}${more}`;
}

function limit(most: string, bound: unknown, { origin, inclusive }: InputIssue): string {
  const unit = units[String(origin)];
  if (unit !== undefined) {
    const one = bound === 1 ? unit.replace(/ies$/, 'y').replace(/s$/, '') : unit;
    return `must have ${most} ${bound} ${one}`;
  }
  if (inclusive === false) return `must be ${most === 'at least' ? 'greater' : 'less'} than ${bound}`;
  return `must be ${most} ${bound}`;
}
