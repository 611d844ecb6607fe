/** URLs from a CA or another server: only http(s) URLs may become links. */

/** The URL for a link, or undefined unless it is http(s): `javascript:`, `data:` and others stay text. */
export function webAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined;
}
