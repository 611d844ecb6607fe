/**
 * Signs in to a vault at a server by its OpenID Connect provider: shows a page and a code, and asks the vault until the
 * person has confirmed the code there. This machine needs no browser, and never talks to the provider.
 */
import { minute, second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { printable } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { isBearerSession } from '../../crypto/secrets/session-token.ts';
import type { RemoteVault } from '../remote/remote-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** The session of a person at a server; `expiresAt` as the server writes it. */
export type DeviceSession = {
  readonly token: Secret<string>;
  readonly name: string;
  readonly role: string;
  readonly expiresAt: string;
};

type Begun = {
  readonly handle: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string | null;
  readonly interval: number;
  readonly expires_at: string;
};

type Finished = {
  readonly token: string;
  readonly name: string;
  readonly role: string;
  readonly expires_at: string;
};

/** Longer than any vault lets a person take. */
const patience = 15 * minute;

/** How much longer to wait after a request that came too early, or that the vault could not serve. */
const pause = 5;

/** Throws the Problem with which the vault refuses the person, and OperatorError if there is no session in time. */
export async function deviceLogin({ stderr, world }: Terminal, remote: RemoteVault): Promise<DeviceSession> {
  const begun = await remote.send<Begun>('POST', '/session/device');
  stderr.write(instructions(begun));
  const stop = stopSignal();
  const end = world.now() + patience;
  let wait = secondsOf(begun.interval);
  while (world.now() < end) {
    await world.sleep(wait * second, stop);
    if (stop.aborted) throw new OperatorError('interrupted');
    const answer = await ask(remote, begun.handle);
    if (answer !== undefined && 'token' in answer) return sessionIn(answer);
    wait = answer === undefined ? secondsOf(wait + pause) : secondsOf(answer.interval);
  }
  throw new OperatorError('the sign-in was not confirmed in time');
}

/** Undefined if the vault asks for patience. */
async function ask(
  remote: RemoteVault,
  handle: string,
): Promise<Finished | { readonly interval: number } | undefined> {
  try {
    return await remote.send('POST', '/session/device/token', { handle });
  } catch (error) {
    if (error instanceof Problem && ['rate_limited', 'unavailable'].includes(error.code)) return undefined;
    throw error;
  }
}

function instructions(begun: Begun): string {
  const shown = (text: unknown) => printable(String(text));
  const { user_code: code, verification_uri: page, verification_uri_complete: complete } = begun;
  const [url, what] =
    typeof complete === 'string'
      ? [complete, `Check that the page shows the code ${shown(code)}.`]
      : [page, `Enter the code ${shown(code)} there.`];
  return [
    'Open this URL in any browser, and sign in at the identity provider.',
    '',
    `  ${shown(url)}`,
    '',
    `${what} Never confirm a code that someone else sent you.`,
    `Waiting until ${shown(begun.expires_at)}.`,
    '',
  ].join('\n');
}

function sessionIn({ token, name, role, expires_at: expiresAt }: Finished): DeviceSession {
  if (typeof token === 'string' && isBearerSession(token) && /^[\w.-]{1,1000}$/.test(token)) {
    return { token: new Secret(token), name: String(name), role: String(role), expiresAt: String(expiresAt) };
  }
  throw new OperatorError('the server sent no session', {
    hint: 'Check that the URL is the one of a vault.',
  });
}

/** From 1 to 60, however wrong the server is. */
function secondsOf(interval: number): number {
  return Math.min(60, Math.max(1, Number(interval) || pause));
}
