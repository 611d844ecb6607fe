/** Signed requests (RFC 8555 §6.2 to §6.5): who sent them, and what their payload asks for. */
import type { z } from 'zod';
import { second } from '../../base/duration.ts';
import {
  type AcmeCaller,
  ClientRefused,
  findDirectoryIssuer,
  requireCaller,
  type SignedRequest,
} from '../../domain/acme-server/accounts/callers.ts';
import { refuseOtherAlgorithm } from '../../domain/acme-server/protocol/account-keys.ts';
import { AcmeProblem, type AcmeProblemType } from '../../domain/acme-server/protocol/acme-problem.ts';
import { parseObject, readMessage } from '../../domain/acme-server/protocol/signed-messages.ts';
import { parseInput } from '../../domain/inputs.ts';
import type { Reply } from '../request/reply.ts';
import type { Call } from '../request/route.ts';
import { type AcmeUrls, accountIdIn, acmeUrls } from './acme-urls.ts';

/** A call by an account. */
export type AccountCall = {
  readonly call: Call;
  readonly caller: AcmeCaller;
  readonly urls: AcmeUrls;
  /** The URL of the account. */
  readonly accountUrl: string;
  readonly payload: Buffer;
};

/** The issuer whose directory is in the path. Throws `malformed` if there is none. */
export async function issuerOf({ context, params }: Call) {
  const issuer = await findDirectoryIssuer(context.vault, params.issuer ?? '');
  if (issuer !== undefined) return issuer;
  throw new AcmeProblem('malformed', 'There is no ACME directory at this URL.', { status: 404 });
}

export function urlsOf({ baseUrl, params }: Call): AcmeUrls {
  return acmeUrls(baseUrl, params.issuer ?? '');
}

/**
 * The request in a body whose algorithm, URL and nonce are accepted; the signature is not verified yet. Throws
 * `malformed`, `badSignatureAlgorithm`, `unauthorized` for another URL than that of the request (§6.4), and `badNonce`.
 */
export async function readSigned(call: Call): Promise<SignedRequest> {
  const issuer = await issuerOf(call);
  const message = readMessage(call.body);
  refuseOtherAlgorithm(message);
  const url = `${call.baseUrl}${call.target}`;
  if (message.header.url !== url) {
    throw new AcmeProblem(
      'unauthorized',
      `The request was signed for another URL than ${url.slice(0, 500)}, at which it arrived. If a proxy stands before the vault, set --public-url or --trusted-proxies.`,
    );
  }
  const nonce = call.context.acme.nonces.use(message.header.nonce);
  const { ip, requestId } = call.actor;
  return { issuer, message, nonce, origin: { ip, requestId } };
}

/** Runs what an account asks for. */
export async function forAccount(call: Call, work: (account: AccountCall) => Promise<Reply>): Promise<Reply> {
  return byAccount(call, await readSigned(call), work);
}

/** `forAccount` for a request that was read. */
export async function byAccount(
  call: Call,
  request: SignedRequest,
  work: (account: AccountCall) => Promise<Reply>,
): Promise<Reply> {
  const { kid } = request.message.header;
  if (kid === undefined) {
    throw new AcmeProblem('malformed', 'The request must have the header kid: the URL of the account.');
  }
  const urls = urlsOf(call);
  const { vault, acme } = call.context;
  return recordingRefusals(call, async (known) => {
    const caller = await requireCaller(vault, acme.keys, request, accountIdIn(kid, urls));
    known(caller);
    if (request.message.payload.length > 0) requireAllowance(call, caller.client);
    return work({ call, caller, urls, accountUrl: kid, payload: request.message.payload });
  });
}

/** Throws `rateLimited` if the client changes too much: a stolen account must not fill the disk. */
export function requireAllowance({ context }: Call, { id }: Pick<AcmeCaller['client'], 'id'>): void {
  const excess = context.keyLimits.changeExcessOf(id);
  if (excess === undefined) return;
  throw new AcmeProblem('rateLimited', excess.body.detail, {
    retryAfterMs: (excess.retryAfter ?? 1) * second,
  });
}

/**
 * Runs a request, which says who its client is as soon as that is known. Refusals of known clients come into the audit
 * log.
 */
export async function recordingRefusals(
  call: Call,
  work: (known: (client: KnownClient) => void) => Promise<Reply>,
): Promise<Reply> {
  let client: KnownClient | undefined;
  const know = (found: KnownClient) => {
    client = found;
    call.nameActor(found.actor.name);
    call.context.vault.keyUse.noteAcmeClient(found.client.id, found.actor.ip);
  };
  try {
    return await work(know);
  } catch (error) {
    if (error instanceof ClientRefused) know(error.caller);
    if (client !== undefined && error instanceof AcmeProblem && recorded.includes(error.type)) {
      await recordRefusal(call, client, error);
    }
    throw error;
  }
}

type KnownClient = Pick<AcmeCaller, 'client' | 'actor'>;

const recorded: readonly AcmeProblemType[] = [
  'unauthorized',
  'rejectedIdentifier',
  'invalidProfile',
  'rateLimited',
];

async function recordRefusal(
  { context, path }: Call,
  { actor, client }: KnownClient,
  { type: code }: AcmeProblem,
) {
  const { vault, keyLimits } = context;
  const detail = { code };
  const subject = `acme-client:${client.id}`;
  const [action, target] = ['access.refuse', `POST ${path}`.slice(0, 300)] as const;
  await vault.refusals.record({ actor, action, subject, target, detail }, keyLimits);
}

/** The payload of a request that asks for something. Throws `malformed`. */
export function payloadOf<T>({ payload }: Pick<AccountCall, 'payload'>, schema: z.ZodType<T>): T {
  const json = parseObject(payload);
  if (json === undefined) throw new AcmeProblem('malformed', 'The payload must be a JSON object.');
  return parseInput(schema, json);
}

/** Throws `malformed` unless the request only reads a resource (§6.3). */
export function requireRead({ payload }: Pick<AccountCall, 'payload'>): void {
  if (payload.length === 0) return;
  throw new AcmeProblem('malformed', 'This resource is only read: the payload must be empty (POST-as-GET).');
}
