/**
 * Change notifications for the console as server-sent events (HTML Standard §9.2): that something changed, not its new
 * state.
 */
import { second } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import type { AdministratorIdentity } from '../../domain/access/identity.ts';
import { noQuery } from '../openapi/schemas.ts';
import type { StreamEnds } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import type { ServerContext } from '../request/server-context.ts';

/** Per person; each browser tab has one. */
const maxListeners = 20;

/** Proxies close connections that are silent for a minute. */
const keepAliveAfter = 15 * second;

/** The number of listeners, by vault and person. */
const listening = new WeakMap<ServerContext['vault'], Map<string, number>>();

export const eventRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/events',
    id: 'listen',
    summary: 'Stream server-sent events: `change`, with the kinds of objects that changed',
    access: { kind: 'administrator', isPersonal: true },
    query: noQuery,
    replies: {
      200: {
        description: 'events until the session expires or the server stops',
        contentType: 'text/event-stream',
      },
    },
    problems: ['rate_limited'],
    handle: async ({ context, identity }) => {
      if (identity?.kind !== 'administrator') throw new Problem('forbidden');
      if ((counts(context.vault).get(identity.name) ?? 0) >= maxListeners) {
        throw new Problem('rate_limited', {
          detail: `Too many event streams: the limit is ${maxListeners}.`,
          retryAfter: 30,
        });
      }
      return {
        status: 200,
        headers: {
          'Content-Type': 'text/event-stream',
          'Cache-Control': 'no-store',
          // nginx would buffer the events.
          'X-Accel-Buffering': 'no',
        },
        stream: (ends) => events(context, identity, ends),
      };
    },
  }),
];

async function* events(
  context: ServerContext,
  identity: AdministratorIdentity,
  { gone, stopping }: StreamEnds,
): AsyncGenerator<string> {
  const { changes, world } = context.vault;
  const byName = counts(context.vault);
  const { name, session } = identity;
  byName.set(name, (byName.get(name) ?? 0) + 1);
  try {
    yield 'retry: 3000\n\n';
    let lastWord = world.now();
    for await (const kinds of changes.watch(AbortSignal.any([gone, stopping]))) {
      if (!(await context.isSessionLive(session.id))) return;
      const text =
        kinds.length > 0 ? `event: change\ndata: ${JSON.stringify({ kinds })}\n\n` : ': still here\n\n';
      if (kinds.length === 0 && world.now() - lastWord < keepAliveAfter) continue;
      lastWord = world.now();
      yield text;
    }
  } finally {
    const left = (byName.get(name) ?? 1) - 1;
    if (left === 0) byName.delete(name);
    else byName.set(name, left);
  }
}

function counts(vault: ServerContext['vault']): Map<string, number> {
  const known = listening.get(vault) ?? new Map<string, number>();
  listening.set(vault, known);
  return known;
}
