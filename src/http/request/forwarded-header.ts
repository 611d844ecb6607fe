/**
 * The header `Forwarded` (RFC 7239), parsed from its end: a proxy appends its element, and nothing that its client
 * wrote before, such as an unclosed quotation mark, may affect the result.
 */

/** The element of one proxy. */
export type ForwardedElement = {
  /** The client of the proxy, without quotation marks: an address with an optional port, `unknown` or `_name`. */
  readonly for: string | undefined;
  readonly proto: string | undefined;
};

/** A token, or a quoted string with its escapes (RFC 9110 §5.6.2, §5.6.4). */
const pair = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")$/;

/** The elements of the header (its lines joined with commas), last one first; undefined for a malformed element. */
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

/** The parts between separators outside quoted strings, last one first. */
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
