/**
 * A TCP proxy in the test process in front of a Patroni cluster: one port, behind which is the primary. It asks the
 * REST API of each member which one that is, as HAProxy does in many installations.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

/** A member, with the ports at 127.0.0.1 of its server and of its Patroni. */
export type ProxiedMember = {
  readonly name: string;
  readonly ports: { readonly sql: number; readonly rest: number };
};

export type PrimaryProxy = {
  readonly port: number;
  /** The name of the member that connections go to; undefined while they are refused. */
  readonly target: () => string | undefined;
};

/** Milliseconds between two questions to a member. */
const interval = 100;
/** A member that does not answer for so long is silent. */
const silence = 1000;

/** The timeline that a primary writes (the higher one is the newer primary), or undefined for a member that is none. */
type Claim = number | undefined;

/**
 * Starts the proxy; it ends when the test ends. When the role moves, or when the primary gives it up or refuses
 * connections, it resets all connections to the former primary; without a primary it resets new ones. A member that is
 * only silent, as a frozen machine, keeps its connections until another is primary, so that clients see them hang.
 */
export async function primaryProxy(
  t: Pick<TestContext, 'after'>,
  members: readonly ProxiedMember[],
): Promise<PrimaryProxy> {
  const claims = new Map<ProxiedMember, Claim>();
  const pairs = new Set<readonly Socket[]>();
  const ended = new AbortController();
  let target: ProxiedMember | undefined;

  const server = createServer((client) => {
    client.on('error', () => undefined);
    if (target === undefined) client.resetAndDestroy();
    else join(client, connect(target.ports.sql, '127.0.0.1'), pairs);
  });

  const watch = async (member: ProxiedMember) => {
    while (!ended.signal.aborted) {
      const claim = await ask(member, ended.signal);
      if (claim !== 'silent') claims.set(member, claim);
      const next = newest(claims);
      if (next !== target) {
        target = next;
        for (const pair of pairs) for (const socket of pair) reset(socket);
      }
      await sleep(interval, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const watches = members.map(watch);
  t.after(async () => {
    ended.abort();
    await Promise.all(watches);
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, target: () => target?.name };
}

/** One that is ending cannot be reset: Node would keep its handle, and spin without end when the process exits. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** Passes bytes in both directions; each end ends the other. */
function join(client: Socket, onward: Socket, pairs: Set<readonly Socket[]>): void {
  const pair = [client, onward];
  pairs.add(pair);
  client.pipe(onward).pipe(client);
  for (const socket of pair) {
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      pairs.delete(pair);
      for (const other of pair) other.destroy();
    });
  }
}

async function ask({ ports }: ProxiedMember, ended: AbortSignal): Promise<Claim | 'silent'> {
  const late = AbortSignal.timeout(silence);
  try {
    const response = await fetch(`http://127.0.0.1:${ports.rest}/primary`, {
      signal: AbortSignal.any([late, ended]),
    });
    const { timeline } = (await response.json()) as { timeline?: number };
    return response.ok ? (timeline ?? 0) : undefined;
  } catch {
    // Refused connections are an answer: no Patroni runs there.
    return late.aborted ? 'silent' : undefined;
  }
}

/** Of two that claim to be primary, as a former one that has not noticed yet, the one with the higher timeline is. */
function newest(claims: ReadonlyMap<ProxiedMember, Claim>): ProxiedMember | undefined {
  const primaries = [...claims].filter(([, claim]) => claim !== undefined);
  return primaries.toSorted(([, one = 0], [, other = 0]) => other - one)[0]?.[0];
}
