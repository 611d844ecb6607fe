/**
 * The cookies of an administrator's session, and of a sign-in that has begun (RFC 6265 §5.4): how they are read, set
 * and cleared.
 */
import type { Secret } from '../../base/secret.ts';

export const sessionCookie = 'vault_session';

const oidcCookie = 'vault_oidc';

/** The first step of a sign-in, and the challenge of one by passkey. */
export type StepCookie = 'vault_second_step' | 'vault_passkey';

/**
 * The name of the cookie for this URL of the vault. Over HTTPS, its prefix makes browsers accept it only from this host
 * and send it only encrypted (RFC 6265bis §4.1.3.2).
 */
export function sessionCookieName(baseUrl: string): string {
  return isHttps(baseUrl) ? `__Host-${sessionCookie}` : sessionCookie;
}

/** Likewise, for a sign-in by OpenID Connect that has begun. */
export function oidcCookieName(baseUrl: string): string {
  return isHttps(baseUrl) ? `__Host-${oidcCookie}` : oidcCookie;
}

/** Likewise, for a sign-in that has begun here. */
export function stepCookieName(baseUrl: string, cookie: StepCookie): string {
  return isHttps(baseUrl) ? `__Host-${cookie}` : cookie;
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

/** `Set-Cookie` for a sign-in that has begun. The provider, another site, sends the browser back with it. */
export function oidcSetCookie(baseUrl: string, sealed: Secret<string>, seconds: number): string {
  const value = `${oidcCookieName(baseUrl)}=${sealed.expose()}; Max-Age=${seconds}`;
  return value + attributes(baseUrl, 'Lax');
}

/** `Set-Cookie` for a sign-in that has begun here; other sites cannot send it. */
export function stepSetCookie(
  baseUrl: string,
  cookie: StepCookie,
  sealed: Secret<string>,
  seconds: number,
): string {
  return `${stepCookieName(baseUrl, cookie)}=${sealed.expose()}; Max-Age=${seconds}${attributes(baseUrl)}`;
}

/** `Set-Cookie` that deletes it. */
export function oidcClearCookie(baseUrl: string): string {
  return `${oidcCookieName(baseUrl)}=; Max-Age=0${attributes(baseUrl, 'Lax')}`;
}

function attributes(baseUrl: string, sameSite: 'Strict' | 'Lax' = 'Strict'): string {
  return `; Path=/; HttpOnly; SameSite=${sameSite}${isHttps(baseUrl) ? '; Secure' : ''}`;
}

function isHttps(baseUrl: string): boolean {
  return baseUrl.startsWith('https://');
}
