/**
 * From a request to an identity, and from an identity to a yes or no: the only place that reads credentials. Refusals
 * to a key that is known are recorded before they are answered.
 */
import { Problem } from '../../base/problem.ts';
import type { ApiKeyState } from '../../domain/access/authentication.ts';
import {
  type ApiKeyIdentity,
  actorName,
  administratorNeeded,
  forbiddenByNetwork,
  type Identity,
  isAllowedFrom,
  requireScope,
} from '../../domain/access/identity.ts';
import { Refusals } from '../../domain/access/refusals.ts';
import type { Actor } from '../../domain/audit/audit.ts';
import { type ClientOrigin, clientOriginOf } from '../request/base-url.ts';
import type { RequestContext } from '../request/request-log.ts';
import type { Access, Route } from '../request/route.ts';
import type { FoundRoutes } from '../request/route-table.ts';
import type { ServerContext } from '../server/server-context.ts';
import { readBearer } from './bearer.ts';
import { changesSomething, crossSite, provenanceOf } from './same-origin.ts';
import { readSession, sessionCookieName } from './session-cookie.ts';

/** What is known of a request before anybody is identified. */
type Origin = {
  readonly story: RequestContext;
  readonly found: FoundRoutes;
  readonly whereabouts: ClientOrigin;
};

export type AuthorizedRequest = {
  readonly identity: Identity | undefined;
  readonly actor: Actor;
  readonly whereabouts: ClientOrigin;
};

type Guarded = Exclude<Access, { readonly kind: 'public' | 'metrics' }>;

/** Whose credentials were presented, and whether they count. */
type Caller = { readonly identity: Identity; readonly state: ApiKeyState };

/**
 * Who calls, and from where, if they may; `story` is told so as soon as it is known, also where they may not. Throws
 * `unauthenticated` (one answer for no, malformed, unknown, revoked and expired keys) and `forbidden` (one answer for
 * certificates outside the allowlist, whether they exist or not, and one for all who are no administrator where one is
 * needed: a better key would not help them), and `rate_limited` for keys that do not count and come too often, or that
 * are used too often.
 */
export async function authorizeRequest(
  context: ServerContext,
  { access, method }: Route,
  story: RequestContext,
  found: FoundRoutes,
): Promise<AuthorizedRequest> {
  const whereabouts = clientOriginOf(story.request, context);
  story.ip = whereabouts.ip;
  const origin = { story, found, whereabouts };
  const provenance = changesSomething(method)
    ? provenanceOf(story.request.headers, whereabouts.certainUrl)
    : 'same-origin';
  if (access.kind === 'public') {
    // Nobody signs somebody in, or sets the vault up, from another site.
    if (provenance === 'elsewhere') throw crossSite();
    return { identity: undefined, actor: actorAt(origin, 'anonymous'), whereabouts };
  }
  if (access.kind === 'metrics') return admitScraper(context, origin);
  const { vault, authenticator } = context;
  await vault.freshness.look();
  const { authorization } = story.request.headers;
  const raw = readBearer(authorization);
  // A key that is presented counts alone, also where it cannot be read: a session counts without the header.
  const known =
    authorization === undefined
      ? sessionOf(context, origin)
      : raw === undefined
        ? undefined
        : authenticator.authenticate(raw);
  // Mostly it is there at once, and waiting for it would cost as much as finding it.
  const caller = known instanceof Promise ? await known : known;
  if (caller === undefined) return refuseNobody(context, access, raw, origin);
  const { identity, state } = caller;
  const actor = actorAt(origin, actorName(identity));
  story.actor = actor.name;
  if (identity.kind === 'api-key') {
    if (state !== 'active') {
      vault.meter.authenticationFailed(`key_${state}`);
      const problem = access.kind === 'scope' ? new Problem('unauthenticated') : administratorNeeded();
      return refuseKey(context, identity, actor, origin, problem, detailOf(access, state));
    }
    if (!isAllowedFrom(identity, actor.ip)) {
      vault.meter.authenticationFailed('key_network');
      const detail = { code: 'forbidden', reason: 'network' };
      return refuseKey(context, identity, actor, origin, forbiddenByNetwork(actor.ip), detail);
    }
    const excess = context.keyLimits.limitExceeded(identity.id);
    if (excess !== undefined) return refuseExcess(context, identity, actor, origin, excess);
    vault.keyUse.note(identity.id, actor.ip);
  }
  try {
    demandAccess(access, identity, found.params.name);
  } catch (error) {
    await recordRefusal(context, identity, actor, origin, detailOf(access, state));
    throw error;
  }
  if (identity.kind === 'administrator' && provenance !== 'same-origin') {
    const detail = { code: 'forbidden', reason: 'from another site' };
    await recordRefusal(context, identity, actor, origin, detail);
    throw crossSite();
  }
  return { identity, actor, whereabouts };
}

/** Who has the token for metrics, which opens nothing else. Throws `unauthenticated` and `rate_limited`. */
function admitScraper({ metrics, keyLimits }: ServerContext, origin: Origin): AuthorizedRequest {
  const { story, whereabouts } = origin;
  const token = readBearer(story.request.headers.authorization);
  if (metrics?.isOpenTo(token) === true) {
    story.actor = 'metrics';
    return { identity: undefined, actor: actorAt(origin, story.actor), whereabouts };
  }
  if (token !== undefined) keyLimits.fail(whereabouts.ip);
  throw new Problem('unauthenticated', {
    detail: 'Metrics need the token in --metrics-token-file.',
  });
}

async function sessionOf(
  { findSession }: ServerContext,
  { story, whereabouts }: Origin,
): Promise<Caller | undefined> {
  const token = readSession(story.request.headers.cookie, sessionCookieName(whereabouts.baseUrl));
  const identity = token === undefined ? undefined : await findSession(token);
  return identity && { identity, state: 'active' };
}

/** One for all: what strangers are told again and again. */
const unauthenticated = new Problem('unauthenticated');

/** Throws where nobody may do it. */
function refuseNobody(
  { keyLimits, vault }: ServerContext,
  access: Guarded,
  raw: string | undefined,
  { whereabouts }: Origin,
): never {
  if (raw !== undefined) {
    vault.meter.authenticationFailed('key_unknown');
    keyLimits.fail(whereabouts.ip);
  }
  if (access.kind === 'administrator') throw administratorNeeded();
  if (access.kind === 'scope') throw unauthenticated;
  throw new Problem('unauthenticated', { detail: 'Not signed in, or the session has expired.' });
}

/** Records that a key which is known does not count, and throws what it is told. */
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
  // Not before: what this address has failed with otherwise must not keep it out of the audit log.
  context.keyLimits.fail(actor.ip);
  throw problem;
}

/** Throws that a key which counts is used too often, and records it now and then. */
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

/** Throws where whoever counts may not do it. */
function demandAccess(access: Guarded, identity: Identity, name: string | undefined): void {
  if (access.kind === 'scope') requireScope(identity, access.scope, name);
  else if (identity.kind !== 'administrator') throw administratorNeeded();
}

function detailOf(access: Guarded, state: ApiKeyState): Readonly<Record<string, string>> {
  const reason = state === 'active' ? {} : { reason: state };
  if (access.kind !== 'scope') return { code: 'forbidden', needs: 'administrator', ...reason };
  return state === 'active'
    ? { code: 'forbidden', scope: access.scope }
    : { code: 'unauthenticated', ...reason };
}

function actorAt({ story, whereabouts }: Origin, name: string): Actor {
  return { name, ip: whereabouts.ip, requestId: story.requestId };
}

async function recordRefusal(
  { vault, keyLimits }: ServerContext,
  identity: Identity,
  actor: Actor,
  origin: Origin,
  detail: Readonly<Record<string, string>>,
): Promise<void> {
  const subject = identity.kind === 'api-key' ? `api-key:${identity.id}` : `administrator:${identity.name}`;
  const how = keyLimits.howToRecord(Refusals.kindOf({ actor, detail }));
  await vault.refusals.record({ actor, subject, target: targetOf(origin), detail }, how);
}

/** A path can have thousands of characters, and whoever holds a key can ask for as many paths as they like. */
const longestTarget = 300;

/** Method and path as the audit log names them. */
function targetOf({ story: { request }, found: { routes, params } }: Origin): string {
  const path = routes.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
  return `${request.method} ${path}`.slice(0, longestTarget);
}
