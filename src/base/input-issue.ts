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
};

/** How the texts of zod's default locale begin; other texts come from our schemas. */
const isDefaultText = /^(Invalid|Too (small|big)|Unrecognized)\b/;

const types: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  map: 'a mapping',
  number: 'a number',
  object: 'a mapping of names to values',
  record: 'a mapping of names to values',
  string: 'a string',
};

const units: Readonly<Record<string, string>> = { string: 'characters', array: 'entries', set: 'entries' };

const formats: Readonly<Record<string, string>> = {
  datetime: 'an RFC 3339 timestamp',
  email: 'an e-mail address',
  url: 'a URL',
};

/** The second half of a sentence about the value: `is missing`, `must be a number`, or the text of the schema. */
export function describeIssue(issue: InputIssue): string {
  const { code, message, expected, values = [], format } = issue;
  if (!isDefaultText.test(message)) return message;
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

function limit(most: string, bound: unknown, { origin, inclusive }: InputIssue): string {
  const unit = units[String(origin)];
  if (unit !== undefined) {
    const one = bound === 1 ? unit.replace(/ies$/, 'y').replace(/s$/, '') : unit;
    return `must have ${most} ${bound} ${one}`;
  }
  if (inclusive === false) return `must be ${most === 'at least' ? 'greater' : 'less'} than ${bound}`;
  return `must be ${most} ${bound}`;
}
