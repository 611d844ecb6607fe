/** Reads the YAML document of `vault apply` and reports errors by file, line and key. */
import { Problem } from '../../../base/problem.ts';
import { documentVersion, sections } from '../../../domain/desired-state/desired-sections.ts';
import {
  type DesiredState,
  readDesiredState,
  type StateIssue,
} from '../../../domain/desired-state/desired-state.ts';
import { commonOptions, serveOptions } from '../../settings/settings.ts';

/** Large enough for ten thousand certificates and API keys. */
export const largestDocument = 16 * 1024 * 1024;

export type DesiredDocument = {
  readonly state: DesiredState;
  /** The problem that reports these errors with their lines. */
  readonly refusal: (issues: readonly StateIssue[]) => Problem;
};

type Path = StateIssue['path'];

/** Reads the text of the file called `name`. Throws `invalid_request` that reports every error with its line. */
export async function readDesiredDocument(text: string, name: string): Promise<DesiredDocument> {
  const { isMap, isSeq, LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  // The parser's warnings and pretty errors quote the text, which may hold a secret by mistake.
  const quiet = { prettyErrors: false, logLevel: 'error' } as const;
  // Keys are strings: 007 is not 7.
  const document = parseDocument(text, { ...quiet, merge: true, stringKeys: true, lineCounter: lines });
  const at = (offset: number) => `${name}:${lines.linePos(offset).line}`;
  // Later errors mostly follow from the first.
  const [error] = document.errors;
  if (error !== undefined) {
    const { line } = lines.linePos(error.pos[0]);
    throw refused([`${name}:${line}: ${yamlFault(error, text.split('\n')[line - 1] ?? '')}`]);
  }

  /** The offset of the deepest known key of the path. */
  const offsetOf = (path: Path): number => {
    let node: unknown = document.contents;
    let offset = 0;
    for (const key of path) {
      if (isMap(node)) {
        const pair = node.items.find((item) => String(plain(item.key)) === String(key));
        if (pair === undefined) return offset;
        offset = rangeOf(pair.key) ?? offset;
        node = pair.value;
      } else if (isSeq(node)) {
        node = node.items[Number(key)];
        offset = rangeOf(node) ?? offset;
      } else return offset;
    }
    return offset;
  };
  const refusal = (issues: readonly StateIssue[]) =>
    refused(
      issues.map(({ path, message, isPredicate = false }) => {
        const place = path.length === 0 ? 'the document' : path.map(shownKey).join('.');
        const said = isPredicate ? `${place} ${message}` : `${place}: ${message}`;
        return `${at(offsetOf(path))}: ${said}`;
      }),
    );

  let value: unknown;
  try {
    value = document.toJS();
  } catch {
    // The parser's message would quote the text.
    throw refused([`${name}: unresolved alias, or too many aliases; ${starHint}`]);
  }
  const mismatch = wrongDocument(value);
  if (mismatch !== undefined) throw refused([`${name}: ${mismatch}`]);
  const read = readDesiredState(value ?? {});
  if ('issues' in read) throw refusal(read.issues);
  return { state: read.state, refusal };
}

const starHint = 'put a name that begins with * in quotes: "*.example.com"';

/** The parser's error, without the text that it quotes. */
function yamlFault({ code, message }: { code: string; message: string }, line: string): string {
  if (code === 'BAD_ALIAS' || /^\s*(- +)?\*\S/.test(line)) return starHint;
  if (code === 'DUPLICATE_KEY') return 'duplicate key';
  const [unquoted = ''] = message.split('"', 1);
  return `invalid YAML: ${unquoted.trimEnd().replace(/:$/, '')}`;
}

/** Why this is not a document for `vault apply`, such as the server's settings; undefined if it may be one. */
function wrongDocument(value: unknown): string | undefined {
  if (value == null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) {
    return `not a document for "vault apply"; begin with "version: ${documentVersion}"`;
  }
  if ('version' in value || sections.some((section) => section in value)) return undefined;
  const settings = Object.keys({ ...commonOptions, ...serveOptions }).map((key) => key.replaceAll('-', '_'));
  const found = Object.keys(value).filter((key) => settings.includes(key));
  if (found.length === 0) return undefined;
  return (
    `server settings (${found.slice(0, 3).join(', ')}) belong in the settings file of "vault serve"; ` +
    `a file for "vault apply" begins with "version: ${documentVersion}"`
  );
}

function plain(node: unknown): unknown {
  return typeof node === 'object' && node !== null && 'value' in node ? node.value : node;
}

function rangeOf(node: unknown): number | undefined {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  return Array.isArray(range) ? Number(range[0]) : undefined;
}

function shownKey(key: string | number): string {
  const text = String(key);
  if (/^[\w*@-]{1,64}$/.test(text)) return text;
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function refused(messages: readonly string[]): Problem {
  return new Problem('invalid_request', {
    detail: messages.join('\n'),
    errors: messages.map((message) => ({ path: '', message })),
    hint: 'Nothing was changed.',
  });
}
