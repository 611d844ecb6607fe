/** Checks whether a certificate name is taken by reading one row of the list, which avoids an expected 404. */

/** The list path that returns the first name from `name` on that contains it: `name` itself, if it exists. */
export function pathToName(name: string): string {
  const search = new URLSearchParams({ search: name, after: justBefore(name), limit: '1' });
  return `/certificates?${search}`;
}

/** A string that sorts after all names before this one. The tilde is safe because no name contains it. */
function justBefore(name: string): string {
  const before = name.slice(0, -1) + String.fromCharCode(name.charCodeAt(name.length - 1) - 1);
  return before.padEnd(128, '~');
}
