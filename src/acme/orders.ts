/** Orders and their authorizations, from newOrder to the URL of the issued certificate (RFC 8555 §7.4, §7.5). */
import { minute, second } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import type { AcmeClient } from './acme-client.ts';
import { AcmeError } from './acme-error.ts';
import type {
  AcmeAccount,
  AcmeAuthorization,
  AcmeChallenge,
  AcmeDirectory,
  AcmeOrder,
  AcmeOrderStatus,
  NewOrder,
} from './acme-types.ts';
import { readAuthorization, readOrder } from './order-resources.ts';
import { problemOf, problemSentence } from './problem-document.ts';

const firstPause = second / 4;
const maxPause = 15 * second;
/** A longer Retry-After is ignored: polling once a minute is harmless. */
const maxRetryAfter = minute;

/**
 * Creates an order (§7.4); the CA may return a pending order of the account for the same identifiers. `replaces` is
 * sent only to CAs with renewal information; if the CA rejects it, the order is created without it (RFC 9773 §5).
 * Throws AcmeError; `protocol` for a profile that the CA does not offer or ignores.
 */
export async function newOrder(
  client: AcmeClient,
  account: AcmeAccount,
  request: NewOrder,
  signal: AbortSignal,
): Promise<AcmeOrder> {
  const directory = await client.directory(signal);
  const { identifiers, profile } = request;
  const replaces = directory.renewalInfo === undefined ? undefined : request.replaces;
  checkProfile(directory, profile);
  const payload = { identifiers, profile };
  const answer = await client
    .post(directory.newOrder, { ...payload, replaces }, account, signal)
    .catch((error: unknown) => {
      if (replaces === undefined || !mayBeAboutReplaces(error)) throw error;
      const { host } = new URL(directory.newOrder);
      client.context.log.info(
        { host, replaces, reason: error.message },
        'CA rejected the "replaces" field; ordering without it',
      );
      return client.post(directory.newOrder, payload, account, signal);
    });
  const order = readOrder(answer);
  if (profile !== undefined && order.profile !== profile) {
    const given = order.profile === undefined ? 'without a profile' : `with profile ${order.profile}`;
    throw new AcmeError('protocol', `requested profile ${profile}, but the CA created the order ${given}`);
  }
  return order;
}

/** The current state of the order (POST-as-GET). Throws AcmeError. */
export async function fetchOrder(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  signal: AbortSignal,
): Promise<AcmeOrder> {
  return readOrder(await client.postAsGet(url, account, signal), url);
}

/** The current state of the authorization (§7.5): it may be valid from an earlier order. Throws AcmeError. */
export async function fetchAuthorization(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  signal: AbortSignal,
): Promise<AcmeAuthorization> {
  return readAuthorization(await client.postAsGet(url, account, signal));
}

/** Asks the CA to validate the challenge (§7.5.1). Throws AcmeError. */
export async function answerChallenge(
  client: AcmeClient,
  account: AcmeAccount,
  { url }: AcmeChallenge,
  signal: AbortSignal,
): Promise<void> {
  await client.post(url, {}, account, signal);
}

/** Deactivates an authorization (§7.5.2), so that it no longer counts as pending. Throws AcmeError. */
export async function deactivateAuthorization(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  await client.post(url, { status: 'deactivated' }, account, signal);
}

/**
 * Waits for a valid authorization. Polls with `poll` until the signal is aborted. Throws AcmeError `problem` with the
 * name and the reason of the CA if a challenge failed or the authorization is in another final state.
 */
export async function waitForAuthorization(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  signal: AbortSignal,
): Promise<AcmeAuthorization> {
  const ask = () => fetchAuthorization(client, account, url, signal);
  return poll(client.context.world, signal, ask, (authorization) => {
    if (authorization.status === 'valid') return authorization;
    const { status, challenges } = authorization;
    const isUnderWay = challenges.some((challenge) => challenge.status === 'processing');
    const hasFailed = challenges.some((challenge) => challenge.status === 'invalid');
    if (status === 'pending' && (isUnderWay || !hasFailed)) return undefined;
    throw authorizationFailure(authorization);
  });
}

/**
 * Waits until the order has one of the wanted statuses, or `valid`, which is final. Polls with `poll` until the signal
 * is aborted. Throws AcmeError `problem` if it became invalid, unless that is wanted: with the error of the order, else
 * that of its authorizations.
 */
export async function waitForOrder(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  wanted: readonly AcmeOrderStatus[],
  signal: AbortSignal,
): Promise<AcmeOrder> {
  const ask = () => fetchOrder(client, account, url, signal);
  return poll(client.context.world, signal, ask, async (order) => {
    if (wanted.includes(order.status) || order.status === 'valid') return order;
    if (order.status === 'invalid') throw await orderFailure(client, account, order, signal);
    return undefined;
  });
}

/** Sends the certificate signing request, PKCS#10 DER (§7.4), for a ready order. Throws AcmeError. */
export async function finalizeOrder(
  client: AcmeClient,
  account: AcmeAccount,
  { url, finalize }: AcmeOrder,
  csr: Buffer,
  signal: AbortSignal,
): Promise<AcmeOrder> {
  const answer = await client.post(finalize, { csr: csr.toString('base64url') }, account, signal);
  return readOrder(answer, url);
}

function checkProfile({ profiles, newOrder: url }: AcmeDirectory, profile: string | undefined): void {
  if (profile === undefined || Object.hasOwn(profiles, profile)) return;
  const names = Object.keys(profiles).join(', ');
  const offer = names === '' ? 'offers no profiles' : `offers ${names}`;
  throw new AcmeError('protocol', `unknown profile ${profile}: ${new URL(url).host} ${offer}`);
}

/**
 * CAs reject `replaces` with alreadyReplaced (RFC 9773 §7.4). If they do not know the certificate, find it in another
 * account or see other names in it, they use types with other meanings; a retry without `replaces` tells these apart.
 */
function mayBeAboutReplaces(error: unknown): error is AcmeError {
  if (!(error instanceof AcmeError) || error.kind !== 'problem') return false;
  const { type, status = 0, message, retryAfterMs } = error;
  // Pebble reports it like this; if the server really fails, one retry does no harm.
  if (type === 'serverInternal' && status === 500) return retryAfterMs === undefined;
  if (status < 400 || status >= 500 || status === 429) return false;
  if (['alreadyReplaced', 'malformed', 'unauthorized', ''].includes(type)) return true;
  const isOtherMatter = ['rateLimited', 'accountDoesNotExist', 'userActionRequired', 'badNonce'].includes(
    type,
  );
  return !isOtherMatter && /replace|\bARI\b/i.test(message);
}

/**
 * Polls until `outcome` returns a result or throws. Pauses are 0.25 s, doubled up to 15 s, or those of the Retry-After
 * header, up to a minute. Throws AcmeError `aborted` as soon as the signal is aborted.
 */
async function poll<Answer extends { readonly retryAfterMs: number | undefined }, Outcome>(
  world: World,
  signal: AbortSignal,
  ask: () => Promise<Answer>,
  outcome: (answer: Answer) => Outcome | undefined | Promise<Outcome | undefined>,
): Promise<Outcome> {
  for (let pause = firstPause; ; pause = Math.min(2 * pause, maxPause)) {
    const answer = await ask();
    const found = await outcome(answer);
    if (found !== undefined) return found;
    await world.sleep(Math.max(pause, Math.min(answer.retryAfterMs ?? 0, maxRetryAfter)), signal);
    if (signal.aborted) throw new AcmeError('aborted', 'waiting for the CA was canceled');
  }
}

async function orderFailure(
  client: AcmeClient,
  account: AcmeAccount,
  order: AcmeOrder,
  signal: AbortSignal,
): Promise<AcmeError> {
  if (order.error !== undefined) {
    return new AcmeError('problem', problemSentence(order.error), { problem: order.error });
  }
  for (const url of order.authorizations) {
    const authorization = await fetchAuthorization(client, account, url, signal);
    if (!['valid', 'pending'].includes(authorization.status)) return authorizationFailure(authorization);
  }
  const problem = problemOf('the CA set the order to invalid without a reason');
  return new AcmeError('problem', problem.detail, { problem });
}

function authorizationFailure({ identifier, wildcard, status, challenges }: AcmeAuthorization): AcmeError {
  const name = wildcard ? `*.${identifier.value}` : identifier.value;
  const failed = challenges.find(({ error }) => error !== undefined);
  const problem = failed?.error ?? problemOf(`the CA set the authorization to ${status} without a reason`);
  return new AcmeError('problem', `${name}: ${problemSentence(problem)}`, { problem });
}
