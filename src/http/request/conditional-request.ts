/** `If-None-Match` as RFC 9110 §13.1.2 has it: a list of entity tags or `*`, compared weakly. */

/**
 * Whether the header (its lines joined by commas) names the entity tag, so that the answer is 304. A header that is
 * malformed matches nothing: the caller then gets the whole representation, which is always right.
 */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  // What was sent with the representation comes back as it was.
  if (header === etag) return true;
  if (header.trim() === '*') return true;
  const opaque = etag.startsWith('W/') ? etag.slice(2) : etag;
  let found = false;
  let rest = header;
  while (rest !== '') {
    // A tag may hold commas, so the list cannot simply be split at them. Empty elements are allowed (§5.6.1.2).
    const element = /^[ \t]*(?:(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|$)/.exec(rest);
    if (element === null) return false;
    if (element[1] === opaque) found = true;
    rest = rest.slice(element[0].length);
  }
  return found;
}
