/**
 * Starts the validation of names that the binding of the client does not validate, and stores what comes of it (RFC
 * 8555 §7.1.6, §7.5.1). Whichever process is asked validates, in the background. If it is killed, the next one that the
 * client asks validates again.
 */
import { second } from '../../../base/duration.ts';
import { type Json, parseJson, toJson } from '../../../base/json.ts';
import {
  type AcmeClientOrderRow,
  findClientOrder,
  updateClientOrder,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { LoggedContext } from '../../contexts.ts';
import type { Meter } from '../../health/meter.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { AcmeProblem, acmeProblemUrn } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import { validateChallenge } from '../validation/validation.ts';
import type { ValidationContext } from '../validation/validation-context.ts';
import type { Validations } from '../validation/validations.ts';
import {
  authorizationsOf,
  type StoredAuthorization,
  type StoredChallenge,
  statusBy,
} from './authorizations.ts';
import { nothingHere } from './orders.ts';

export type ValidatingContext = LoggedContext &
  ValidationContext & { readonly validations: Validations; readonly meter: Meter };

/** An order, and who asks for it. */
export type OrderOfCaller = {
  readonly caller: AcmeCaller;
  readonly order: AcmeClientOrderRow;
  /** The URL of the account, as the client knows it. */
  readonly accountUri: string;
};

/** A challenge that its client says it is ready for (RFC 8555 §7.5.1). */
export type StartedValidation = OrderOfCaller & {
  /** Of the authorization in the order. */
  readonly position: number;
  readonly authorization: StoredAuthorization;
  readonly challenge: StoredChallenge;
};

type Place = Pick<StartedValidation, 'position'> & { readonly orderId: number; readonly type: string };

/** A validation that has no result after this time is taken for lost, and another process may begin it again. */
const claim = 30 * second;

/**
 * Starts a validation, and returns the challenge as it is afterwards. One that is not pending is returned as it is.
 * Throws `rateLimited` while there are too many, and `malformed` if the order or the authorization is not pending any
 * more.
 */
export async function startValidation(
  vault: ValidatingContext,
  started: StartedValidation,
): Promise<StoredChallenge> {
  const { caller, order, position, challenge } = started;
  if (challenge.status !== 'pending') return challenge;
  vault.validations.requireRoom(caller.client.id);
  const place = { orderId: order.id, position, type: challenge.type };
  const until = vault.world.now() + claim;
  const claimed = await vault.db.write(async (writer) => {
    await storeNonce(writer, caller.nonce);
    const current = await findClientOrder(writer, order.id);
    if (current === undefined) throw nothingHere();
    const found = challengeAt(current, place);
    if (found?.challenge.status !== 'pending') return found?.challenge;
    refuseUnlessPending(current, found.authorization, vault.world.now());
    const changed = { ...found.challenge, status: 'processing', until } as const;
    await updateClientOrder(writer, current, { authorizations: changedAt(current, place, changed) });
    return changed;
  });
  if (claimed === undefined) throw nothingHere();
  if (claimed.status === 'processing') run(vault, started, place);
  return claimed;
}

/** Begins validations of the order again whose process ended before they had a result. */
export async function resumeValidations(vault: ValidatingContext, found: OrderOfCaller): Promise<void> {
  const { order } = found;
  if (order.status !== 'pending') return;
  for (const [position, authorization] of authorizationsOf(order).entries()) {
    for (const challenge of authorization.challenges) {
      const place = { orderId: order.id, position, type: challenge.type };
      if (!isLost(vault, challenge) || vault.validations.isRunning(keyOf(place))) continue;
      if (await claimAgain(vault, place)) run(vault, { ...found, position, authorization, challenge }, place);
    }
  }
}

function isLost({ world }: ValidatingContext, { status, until = 0 }: StoredChallenge): boolean {
  return status === 'processing' && until <= world.now();
}

/** Returns false if another process did so meanwhile, or the challenge has a result. */
function claimAgain(vault: ValidatingContext, place: Place): Promise<boolean> {
  return vault.db.write(async (writer) => {
    const order = await findClientOrder(writer, place.orderId);
    const found = order && challengeAt(order, place);
    if (order?.status !== 'pending' || found === undefined || !isLost(vault, found.challenge)) return false;
    const changed = { ...found.challenge, until: vault.world.now() + claim };
    return updateClientOrder(writer, order, { authorizations: changedAt(order, place, changed) });
  });
}

function refuseUnlessPending(order: AcmeClientOrderRow, { status }: StoredAuthorization, now: number): void {
  const isOver = order.expires_at <= now;
  if (order.status === 'pending' && status === 'pending' && !isOver) return;
  const what = isOver ? 'order has expired' : `authorization is ${status} and the order ${order.status}`;
  throw new AcmeProblem('malformed', `The ${what}; create a new order.`);
}

function run(vault: ValidatingContext, started: StartedValidation, place: Place): void {
  const { caller, authorization, challenge, accountUri } = started;
  const { identifier, wildcard } = authorization;
  vault.validations.begin(keyOf(place), caller.client.id, async (signal) => {
    try {
      const problem = await verdict(vault, {
        ...{ type: challenge.type, token: challenge.token, accountUri },
        identifier: wildcard ? `*.${identifier}` : identifier,
        keyAuthorization: `${challenge.token}.${caller.account.thumbprint}`,
        signal,
      });
      await settle(vault, started, place, problem);
    } catch (error) {
      // Without a verdict the challenge stays as it is, and is validated again when its client asks for it.
      if (!signal.aborted) vault.log.error({ err: error, identifier }, 'ACME validation has no result');
    }
  });
}

async function verdict(
  vault: ValidatingContext,
  { signal, ...challenge }: Parameters<typeof validateChallenge>[1] & { readonly signal: AbortSignal },
): Promise<AcmeProblem | undefined> {
  try {
    await validateChallenge(vault, challenge, signal);
    return undefined;
  } catch (error) {
    if (error instanceof AcmeProblem) return error;
    throw error;
  }
}

/** Stores the result, unless the challenge has one or the authorization was given up. */
async function settle(
  vault: ValidatingContext,
  { caller }: StartedValidation,
  place: Place,
  problem: AcmeProblem | undefined,
): Promise<void> {
  const now = vault.world.now();
  const order = await vault.db.write(async (writer) => {
    const current = await findClientOrder(writer, place.orderId);
    if (current === undefined) return undefined;
    const found = challengeAt(current, place);
    if (found?.challenge.status !== 'processing' || found.authorization.status !== 'pending')
      return undefined;
    const { until: _, ...challenge } = found.challenge;
    const result =
      problem === undefined
        ? ({ status: 'valid', validated: now } as const)
        : ({ status: 'invalid', validated: now, error: documentOf(problem) } as const);
    const authorizations = changedAt(current, place, { ...challenge, ...result }, result.status);
    const status = current.status === 'pending' ? statusBy(parseJson(authorizations)) : current.status;
    const error = problem && toJson(documentOf(problem, found.authorization.identifier));
    const isOver = status === 'invalid' && current.status === 'pending';
    const changes = { authorizations, status, ...(isOver && { finished_at: now, error: error ?? null }) };
    await updateClientOrder(writer, current, changes);
    return { isOver, identifier: found.authorization.identifier };
  });
  if (order === undefined) return;
  const { client, issuer } = caller;
  if (order.isOver) vault.meter.ordered('failed', { client: client.name, issuer: issuer.name });
  const fields = { client: client.name, issuer: issuer.name, identifier: order.identifier, type: place.type };
  if (problem === undefined) vault.log.info(fields, 'challenge validated');
  else vault.log.warn({ ...fields, problem: problem.type, reason: problem.message }, 'challenge failed');
}

/** A problem as challenges and orders keep it (RFC 8555 §6.7). */
function documentOf(
  { type, message: detail, status }: AcmeProblem,
  identifier?: string,
): { readonly type: string; readonly detail: string; readonly status: number } {
  const about = identifier === undefined ? detail : `${identifier}: ${detail}`;
  return { type: acmeProblemUrn(type), detail: about, status };
}

function challengeAt(order: AcmeClientOrderRow, { position, type }: Place) {
  const authorization = authorizationsOf(order)[position];
  const challenge = authorization?.challenges.find((one) => one.type === type);
  return authorization && challenge && { authorization, challenge };
}

/** The authorizations of the order with this challenge, and this status of its authorization. */
function changedAt(
  order: AcmeClientOrderRow,
  { position, type }: Place,
  challenge: StoredChallenge,
  status?: StoredAuthorization['status'],
): Json<StoredAuthorization[]> {
  const authorizations = authorizationsOf(order).map((authorization, at) => {
    if (at !== position) return authorization;
    const challenges = authorization.challenges.map((one) => (one.type === type ? challenge : one));
    return { ...authorization, challenges, ...(status !== undefined && { status }) };
  });
  return toJson(authorizations);
}

function keyOf({ orderId, position, type }: Place): string {
  return `${orderId} ${position} ${type}`;
}
