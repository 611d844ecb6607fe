/**
 * Authenticates and authorizes requests: the only place that reads credentials. Rejections of known keys are recorded
 * before the response is sent.
 */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { isBearerSession } from '../../crypto/secrets/session-token.ts';
import type { SecretState } from '../../domain/access/authentication.ts';
import {
  type AdministratorIdentity,
  type ApiKeyIdentity,
  actorName,
  administratorNeeded,
  forbiddenByNetwork,
  type Identity,
  isAllowedFrom,
  sessionEnded,
} from '../../domain/access/identity.ts';
import type { Actor } from '../../domain/audit/audit.ts';
import { type ClientOrigin, clientOriginOf } from '../request/base-url.ts';
import type { RequestContext } from '../request/request-log.ts';
import type { Route } from '../request/route.ts';
import type { FoundRoutes } from '../request/route-table.ts';
import type { ServerContext } from '../request/server-context.ts';
import { certificateRefusal } from './client-certificate.ts';
import { requireEnrolled } from './enrolment.ts';
import { detailOf, type Guarded, needsLabels, requireAccess, takesKeys } from './operation-roles.ts';
import { changesSomething, crossSite, provenanceOf } from './same-origin.ts';
import { readSession, sessionCookieName } from './session-cookie.ts';

/** What is known about a request before authentication. */
type Origin = {
  readonly requestContext: RequestContext;
  readonly found: FoundRoutes;
  readonly client: ClientOrigin;
};

export type AuthorizedRequest = {
  readonly identity: Identity | undefined;
  readonly actor: Actor;
  readonly client: ClientOrigin;
};

/** Whether the query of a route says how many elements of a list it returns. */
function isPaged(query: Route['query']): boolean {
  return query instanceof z.ZodObject && Object.hasOwn(query.shape, 'limit');
}

/** The identity of the presented credentials, and whether they are valid. */
type Caller = { readonly identity: Identity; readonly state: SecretState };

/**
 * The caller and their origin, if authorized; `requestContext` receives them as soon as they are known, even if the
 * request is rejected. Throws `unauthenticated` (the same for missing, malformed, unknown, revoked and expired keys),
 * `forbidden` (the same for existing and missing certificates outside the allowlist, and for all callers of an
 * administrator route who are not administrators), and `rate_limited` for invalid keys that come too often and for keys
 * that are used too often.
 */
export async function authorizeRequest(
  context: ServerContext,
  route: Route,
  requestContext: RequestContext,
  found: FoundRoutes,
): Promise<AuthorizedRequest> {
  const { access, method, query } = route;
  const client = clientOriginOf(requestContext.request, context);
  requestContext.ip = client.ip;
  const origin = { requestContext, found, client };
  const provenance = changesSomething(method)
    ? provenanceOf(requestContext.request.headers, client.certainUrl)
    : 'same-origin';
  if (access.kind === 'public') {
    // Signing in and setup are not allowed from another site.
    if (provenance === 'elsewhere') throw crossSite();
    return { identity: undefined, actor: actorAt(origin, 'anonymous'), client };
  }
  if (access.kind === 'metrics') return authorizeMetrics(context, origin);
  const { vault, authenticator } = context;
  await vault.freshness.look();
  const { authorization } = requestContext.request.headers;
  const raw = readBearer(authorization);
  // What the header presents takes precedence, even if it is malformed: a cookie counts only without the header.
  const isCookie = authorization === undefined;
  const known = isCookie
    ? sessionOf(context, origin)
    : raw === undefined
      ? undefined
      : isBearerSession(raw)
        ? callerOf(context.findSession(raw, 'bearer'))
        : authenticator.authenticate(raw);
  // The result is usually available immediately, and awaiting it would cost as much as computing it.
  const caller = known instanceof Promise ? await known : known;
  if (caller === undefined) return refuseAnonymous(context, access, raw, origin);
  const { identity, state } = caller;
  const actor = actorAt(origin, actorName(identity));
  requestContext.actor = actor.name;
  if (identity.kind === 'api-key') {
    if (state !== 'active') {
      vault.meter.authenticationFailed(`key_${state}`);
      const problem = takesKeys(access) ? new Problem('unauthenticated') : administratorNeeded();
      return refuseKey(context, identity, actor, origin, problem, detailOf(route, access, identity, state));
    }
    if (!isAllowedFrom(identity, actor.ip)) {
      vault.meter.authenticationFailed('key_network');
      const detail = { code: 'forbidden', reason: 'network' };
      return refuseKey(context, identity, actor, origin, forbiddenByNetwork(actor.ip), detail);
    }
    const refusal =
      identity.clientCertificate &&
      (await certificateRefusal(context, identity.clientCertificate, requestContext.request));
    if (refusal) {
      vault.meter.authenticationFailed('key_certificate');
      const detail = { code: 'forbidden', reason: refusal.reason };
      return refuseKey(context, identity, actor, origin, refusal.problem, detail);
    }
    const { keyLimits } = context;
    // A request that has waited is the same one still.
    const excess =
      (requestContext.waiting === undefined ? keyLimits.limitExceeded(identity.id) : undefined) ??
      (isPaged(query) ? keyLimits.pageExcessOf(identity.id) : undefined);
    if (excess !== undefined) return refuseExcess(context, identity, actor, origin, excess);
    vault.keyUse.note(identity.id, actor.ip);
  }
  const { name } = found.params;
  const labels =
    name !== undefined && needsLabels(route, access, identity, name) ? await context.labels.of(name) : [];
  try {
    if (identity.kind === 'administrator') requireEnrolled(context, access, identity);
    requireAccess(route, access, identity, name, labels);
  } catch (error) {
    await recordRefusal(context, identity, actor, origin, detailOf(route, access, identity, state));
    throw error;
  }
  // Browsers send cookies by themselves, and only those: no other site can send a header with a token.
  if (identity.kind === 'administrator' && isCookie && provenance !== 'same-origin') {
    const detail = { code: 'forbidden', reason: 'from another site' };
    await recordRefusal(context, identity, actor, origin, detail);
    throw crossSite();
  }
  return { identity, actor, client };
}

/** Authenticates the metrics token, which grants nothing else. Throws `unauthenticated` and `rate_limited`. */
function authorizeMetrics({ metrics, keyLimits }: ServerContext, origin: Origin): AuthorizedRequest {
  const { requestContext, client } = origin;
  const token = readBearer(requestContext.request.headers.authorization);
  if (metrics?.isOpenTo(token) === true) {
    requestContext.actor = 'metrics';
    return { identity: undefined, actor: actorAt(origin, requestContext.actor), client };
  }
  if (token !== undefined) keyLimits.fail(client.ip);
  throw new Problem('unauthenticated', {
    detail: 'Metrics need the token in --metrics-token-file.',
  });
}

/**
 * The token of `Authorization: Bearer …` (RFC 6750 §2.1), or undefined if the header is missing, malformed or of
 * another scheme.
 */
export function readBearer(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  return /^bearer +([A-Za-z0-9._~+/-]+=*)[ \t]*$/i.exec(header)?.[1];
}

async function sessionOf(
  { findSession }: ServerContext,
  { requestContext, client }: Origin,
): Promise<Caller | undefined> {
  const token = readSession(requestContext.request.headers.cookie, sessionCookieName(client.baseUrl));
  return token === undefined ? undefined : callerOf(findSession(token, 'cookie'));
}

async function callerOf(session: Promise<AdministratorIdentity | undefined>): Promise<Caller | undefined> {
  const identity = await session;
  return identity && { identity, state: 'active' };
}

/** Created once, because unauthenticated clients get it often. */
const unauthenticated = new Problem('unauthenticated');

/** Throws if anonymous access is not allowed. */
function refuseAnonymous(
  { keyLimits, vault }: ServerContext,
  access: Guarded,
  raw: string | undefined,
  { client }: Origin,
): never {
  if (raw !== undefined) {
    vault.meter.authenticationFailed('key_unknown');
    keyLimits.fail(client.ip);
    if (isBearerSession(raw))
      throw sessionEnded(access.kind === 'administrator' ? 'forbidden' : 'unauthenticated');
  }
  if (access.kind === 'administrator') throw administratorNeeded();
  if (takesKeys(access)) throw unauthenticated;
  throw new Problem('unauthenticated', { detail: 'Not signed in, or the session has expired.' });
}

/** Records that a known key is invalid, and throws the error for it. */
async function refuseKey(
  context: ServerContext,
  identity: ApiKeyIdentity,
  actor: Actor,
  origin: Origin,
  problem: Problem,
  detail: Readonly<Record<string, string>>,
): Promise<never> {
  context.keyLimits.failKnown(identity.id, actor.ip);
  await recordRefusal(context, identity, actor, origin, detail);
  // After the record: other failures from this address must not keep the event out of the audit log.
  context.keyLimits.fail(actor.ip);
  throw problem;
}

/** Throws that a valid key is used too often, and records it occasionally. */
async function refuseExcess(
  context: ServerContext,
  identity: ApiKeyIdentity,
  actor: Actor,
  origin: Origin,
  excess: Problem,
): Promise<never> {
  if (context.keyLimits.isFirstReport(identity.id)) {
    await recordRefusal(context, identity, actor, origin, { code: excess.code });
  }
  throw excess;
}

function actorAt({ requestContext, client }: Origin, name: string): Actor {
  return { name, ip: client.ip, requestId: requestContext.requestId };
}

async function recordRefusal(
  { vault, keyLimits }: ServerContext,
  identity: Identity,
  actor: Actor,
  origin: Origin,
  detail: Readonly<Record<string, string>>,
): Promise<void> {
  const subject = identity.kind === 'api-key' ? `api-key:${identity.id}` : `administrator:${identity.name}`;
  const refusal = { actor, action: 'access.refuse', subject, target: targetOf(origin), detail } as const;
  await vault.refusals.record(refusal, keyLimits);
}

/** A path can have thousands of characters, and a client with a key can request any number of paths. */
const maxTargetLength = 300;

/** Method and path as the audit log shows them. */
function targetOf({ requestContext: { request }, found: { routes, params } }: Origin): string {
  const path = routes.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
  return `${request.method} ${path}`.slice(0, maxTargetLength);
}
