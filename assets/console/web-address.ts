/** Addresses that come from a CA or another server: only those of web pages may become links. */

/** The address as a link may have it, or undefined where it is none of the web: `javascript:`, `data:` and others stay text. */
export function webAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined;
}
