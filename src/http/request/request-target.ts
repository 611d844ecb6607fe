/** The request target: its path and query, in the forms that servers must accept and that routes use. */

const absolute = /^https?:\/\/([^/?#]+)/i;

/** The path and query of a request target; a server must also accept the absolute form (RFC 9112 §3.2.2). */
export function originForm(target = ''): string {
  if (target.startsWith('/')) return target;
  const before = absolute.exec(target)?.[0];
  if (before === undefined) return target;
  const rest = target.slice(before.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The host and port of a target in absolute form; undefined for other forms. */
export function authorityOf(target = ''): string | undefined {
  return target.startsWith('/') ? undefined : absolute.exec(target)?.[1];
}

/** The part before the question mark. */
export function pathOf(target = ''): string {
  const queryAt = target.indexOf('?');
  return queryAt === -1 ? target : target.slice(0, queryAt);
}

/** The part after the question mark; empty if there is none. */
export function queryTextOf(target = ''): string {
  const queryAt = target.indexOf('?');
  return queryAt === -1 ? '' : target.slice(queryAt + 1);
}

/** Whether the path can be decoded for routing. */
export function isDecodable(target: string | undefined): boolean {
  const path = pathOf(target);
  if (!path.startsWith('/')) return false;
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    // A URIError means that the path cannot be decoded.
    return false;
  }
}
