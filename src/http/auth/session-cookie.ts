/** The cookie of an administrator's session (RFC 6265 §5.4), and how it is set and cleared. */
import type { Secret } from '../../base/secret.ts';

export const sessionCookie = 'vault_session';

/**
 * The name of the cookie for this URL of the vault. Over HTTPS, its prefix makes browsers accept it only from this host
 * and send it only encrypted (RFC 6265bis §4.1.3.2).
 */
export function sessionCookieName(baseUrl: string): string {
  return isHttps(baseUrl) ? `__Host-${sessionCookie}` : sessionCookie;
}

/**
 * The session token in a `Cookie` header, or undefined if there is none. Two cookies with the name count as none: one
 * of them may come from elsewhere.
 */
export function readSession(header: string | undefined, cookie: string = sessionCookie): string | undefined {
  if (header === undefined) return undefined;
  const values = header.split(';').flatMap((pair) => {
    const equalsAt = pair.indexOf('=');
    const name = pair.slice(0, Math.max(0, equalsAt)).trim();
    // biome-ignore lint/plugin/compared-secrets: names of cookies.
    return name === cookie ? [pair.slice(equalsAt + 1).trim()] : [];
  });
  const [only, ...others] = values;
  return others.length > 0 || only === '' ? undefined : only;
}

/** `Set-Cookie` for a session that lasts at most `seconds`. Scripts cannot read it, and other sites cannot send it. */
export function sessionSetCookie(baseUrl: string, token: Secret<string>, seconds: number): string {
  return `${sessionCookieName(baseUrl)}=${token.expose()}; Max-Age=${seconds}${attributes(baseUrl)}`;
}

/** `Set-Cookie` that deletes it. */
export function sessionClearCookie(baseUrl: string): string {
  return `${sessionCookieName(baseUrl)}=; Max-Age=0${attributes(baseUrl)}`;
}

function attributes(baseUrl: string): string {
  return `; Path=/; HttpOnly; SameSite=Strict${isHttps(baseUrl) ? '; Secure' : ''}`;
}

function isHttps(baseUrl: string): boolean {
  return baseUrl.startsWith('https://');
}
