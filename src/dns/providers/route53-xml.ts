/**
 * The little XML that Route 53 speaks: elements without attributes of interest, texts with the five entities. Read by
 * searching forward only, so that hostile input costs no more than its length.
 */

/** Contents of every element of this name, from outside in, none within another. */
export function elementsOf(xml: string, name: string): string[] {
  const found: string[] = [];
  for (let at = 0; ; ) {
    const open = openingTag(xml, name, at);
    if (open === undefined) return found;
    const close = open.isEmpty ? open.end : xml.indexOf(`</${name}>`, open.end);
    if (close === -1) return found;
    found.push(xml.slice(open.end, close));
    at = open.isEmpty ? open.end : close + name.length + 3;
  }
}

/** Text of the first element of this name, entities resolved; undefined where there is none. */
export function textOf(xml: string, name: string): string | undefined {
  const [content] = elementsOf(xml, name);
  return content === undefined ? undefined : unescapeXml(content.trim());
}

/** As it may stand in an element. */
export function escapeXml(text: string): string {
  const entities: Record<string, string> = {
    '<': '&lt;',
    '>': '&gt;',
    '&': '&amp;',
    '"': '&quot;',
    "'": '&apos;',
  };
  return text.replace(/[<>&"']/g, (mark) => entities[mark] ?? mark);
}

/** The text, where it looks like XML. Throws for anything else. */
export function assertXml(text: string): string {
  if (
    !text.trimStart().startsWith('<') ||
    !text.trimEnd().endsWith('>') ||
    /^\s*<(!doctype|html)/i.test(text)
  ) {
    throw new Error('invalid XML');
  }
  return text;
}

function openingTag(xml: string, name: string, from: number) {
  for (let at = xml.indexOf(`<${name}`, from); at !== -1; at = xml.indexOf(`<${name}`, at + 1)) {
    const next = xml[at + name.length + 1] ?? '';
    if (!/[\s/>]/.test(next)) continue;
    const end = xml.indexOf('>', at);
    if (end === -1) return undefined;
    return { end: end + 1, isEmpty: xml[end - 1] === '/' };
  }
  return undefined;
}

function unescapeXml(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
