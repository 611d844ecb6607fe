/**
 * From a request to an identity, and from an identity to a yes or no: the only place that reads credentials. Refusals
 * to a key that is known are recorded before they are answered.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../base/problem.ts';
import type { Actor } from '../domain/audit.ts';
import { actorName, demand, type Identity } from '../domain/identity.ts';
import { readBearer } from './bearer.ts';
import type { Route } from './route.ts';
import type { ServerContext } from './server-context.ts';

/** What is known of a request before anybody is identified. */
export type Origin = {
  readonly ip: string | undefined;
  readonly requestId: string;
  /** Method and path as the audit log names them. */
  readonly target: string;
};

export type Admitted = { readonly identity: Identity | undefined; readonly actor: Actor };

/**
 * Who calls, if they may. Throws `unauthenticated` (one answer for no, malformed, unknown, revoked and expired keys)
 * and `forbidden` (one answer for certificates outside the allowlist, whether they exist or not).
 */
export async function admit(
  context: ServerContext,
  { access }: Route,
  request: IncomingMessage,
  name: string | undefined,
  origin: Origin,
): Promise<Admitted> {
  if (access.kind === 'public')
    return { identity: undefined, actor: { name: 'anonymous', ...source(origin) } };
  const { vault, authenticator } = context;
  await vault.freshness.look();
  const raw = readBearer(request.headers.authorization);
  const known = raw === undefined ? undefined : await authenticator.authenticate(raw);
  if (known === undefined) throw new Problem('unauthenticated');
  const actor = { name: actorName(known.identity), ...source(origin) };
  if (known.state !== 'active') {
    await recordRefusal(context, actor, origin, { code: 'unauthenticated', reason: known.state });
    throw new Problem('unauthenticated');
  }
  vault.keyUse.note(known.identity.id, origin.ip);
  try {
    demand(known.identity, access.scope, name);
  } catch (error) {
    await recordRefusal(context, actor, origin, { code: 'forbidden', scope: access.scope });
    throw error;
  }
  return { identity: known.identity, actor };
}

/** A path can have thousands of characters, and whoever holds a key can ask for as many paths as they like. */
const longestTarget = 300;

function source({ ip, requestId }: Origin): Pick<Actor, 'ip' | 'requestId'> {
  return { ip, requestId };
}

async function recordRefusal(
  { vault }: ServerContext,
  actor: Actor,
  { target }: Origin,
  detail: Readonly<Record<string, string>>,
): Promise<void> {
  const resource = target.slice(0, longestTarget);
  await vault.audit.append({ actor, action: 'access.refuse', resource, detail });
}
