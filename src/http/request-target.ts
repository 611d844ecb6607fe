/** The target of a request: its path and query, in the form that servers must take and in the form that routes have. */

/** The path and query of a request target; a server must take the absolute form too (RFC 9112 §3.2.2). */
export function originForm(target = ''): string {
  if (target.startsWith('/')) return target;
  const absolute = /^https?:\/\/[^/?#]+/i.exec(target)?.[0];
  if (absolute === undefined) return target;
  const rest = target.slice(absolute.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
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
