/** `If-None-Match` (RFC 9110 §13.1.2): a list of entity tags or `*`, compared weakly. */

/**
 * Whether the header (its lines joined with commas) contains the entity tag, so that the response is 304. A malformed
 * header matches nothing: the client then gets the complete representation, which is always correct.
 */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  // Clients usually return the tag exactly as it was sent.
  if (header === etag) return true;
  if (header.trim() === '*') return true;
  const opaque = etag.startsWith('W/') ? etag.slice(2) : etag;
  let found = false;
  let rest = header;
  while (rest !== '') {
    // A tag may contain commas, so the list cannot be split at them. Empty elements are allowed (§5.6.1.2).
    const element = /^[ \t]*(?:(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|$)/.exec(rest);
    if (element === null) return false;
    if (element[1] === opaque) found = true;
    rest = rest.slice(element[0].length);
  }
  return found;
}
