/** The cookie that carries an administrator's session (RFC 6265 §5.4). */

export const sessionCookie = 'vault_session';

/**
 * The session's token in a `Cookie` header, or undefined where there is none. Two of the name are none: one of them
 * may come from elsewhere, and nobody can say which.
 */
export function readSession(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const values = header.split(';').flatMap((pair) => {
    const [, name, value] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/s.exec(pair) ?? [];
    return name === sessionCookie && value !== undefined ? [value] : [];
  });
  const [only, ...others] = values;
  return others.length > 0 || only === '' ? undefined : only;
}
