/** The target of a request: its path and query, in the form that servers must take and in the form that routes have. */

const absolute = /^https?:\/\/([^/?#]+)/i;

/** The path and query of a request target; a server must take the absolute form too (RFC 9112 §3.2.2). */
export function originForm(target = ''): string {
  if (target.startsWith('/')) return target;
  const before = absolute.exec(target)?.[0];
  if (before === undefined) return target;
  const rest = target.slice(before.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The host and port of a target in absolute form, undefined for the others. */
export function authorityOf(target = ''): string | undefined {
  return target.startsWith('/') ? undefined : absolute.exec(target)?.[1];
}

/** What comes before the question mark. */
export function pathOf(target = ''): string {
  const queryAt = target.indexOf('?');
  return queryAt === -1 ? target : target.slice(0, queryAt);
}

/** What comes after the question mark, empty where there is none. */
export function queryTextOf(target = ''): string {
  const queryAt = target.indexOf('?');
  return queryAt === -1 ? '' : target.slice(queryAt + 1);
}

/** Whether routes can be looked up by its path. */
export function isDecodable(target: string | undefined): boolean {
  const path = pathOf(target);
  if (!path.startsWith('/')) return false;
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    // A URIError is the answer: the path is not decodable.
    return false;
  }
}
