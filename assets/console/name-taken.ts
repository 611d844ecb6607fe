/** Whether a name belongs to a certificate, found out with one row of the list, so that no request has to fail for it. */

/** The list's path with the least name that contains `name` and does not come before it: `name` itself, where it exists. */
export function pathToName(name: string): string {
  const search = new URLSearchParams({ search: name, after: justBefore(name), limit: '1' });
  return `/certificates?${search}`;
}

/** What follows every name that comes before this one; no name has a tilde. */
function justBefore(name: string): string {
  const before = name.slice(0, -1) + String.fromCharCode(name.charCodeAt(name.length - 1) - 1);
  return before.padEnd(128, '~');
}
