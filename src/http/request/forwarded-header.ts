/**
 * The header `Forwarded` (RFC 7239), read from its end: what a proxy adds stands last, and nothing that its client has
 * written before that, such as a quotation mark that is never closed, may change how it is read.
 */

/** What one proxy said. */
export type ForwardedElement = {
  /** The node that it was asked by, without quotation marks: an address, with a port perhaps, `unknown` or `_name`. */
  readonly for: string | undefined;
  readonly proto: string | undefined;
};

/** A token, or a quoted string with its escapes (RFC 9110 §5.6.2, §5.6.4). */
const pair = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")$/;

/** The elements of the header, all its lines joined by commas, the last one first; undefined in the place of one that is malformed. */
export function* forwardedElements(header: string): Generator<ForwardedElement | undefined> {
  for (const element of fromTheEnd(header, ',')) {
    if (element.trim() !== '') yield readElement(element);
  }
}

function readElement(text: string): ForwardedElement | undefined {
  const values = new Map<string, string>();
  for (const part of fromTheEnd(text, ';')) {
    if (part.trim() === '') continue;
    const [, name, token, quoted] = pair.exec(part.trim()) ?? [];
    if (name === undefined || values.has(name.toLowerCase())) return undefined;
    values.set(name.toLowerCase(), token ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'));
  }
  return { for: values.get('for'), proto: values.get('proto') };
}

/** The parts between separators outside of quoted strings, the last one first. */
function* fromTheEnd(text: string, separator: string): Generator<string> {
  let end = text.length;
  let isQuoted = false;
  for (let at = text.length - 1; at >= 0; at -= 1) {
    if (text[at] === '"' && !(isQuoted && isEscaped(text, at))) isQuoted = !isQuoted;
    else if (text[at] === separator && !isQuoted) {
      yield text.slice(at + 1, end);
      end = at;
    }
  }
  yield text.slice(0, end);
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === '\\') first -= 1;
  return (at - first) % 2 === 1;
}
