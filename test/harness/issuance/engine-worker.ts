/**
 * A worker of the renewal engine that a test can stop at any operation: a request to a CA, a write to the database, or
 * a change of a DNS record. It can die there as after kill -9.
 */

import { KeyedMutex } from '../../../src/base/keyed-mutex.ts';
import { Signal } from '../../../src/base/signal.ts';
import type { TxtRecord } from '../../../src/dns/dns-provider.ts';
import { AcmeClients } from '../../../src/domain/acme-accounts/acme-clients.ts';
import { OpenedDnsProviders } from '../../../src/domain/dns-providers/opened-dns-providers.ts';
import { ChallengeRemovals } from '../../../src/domain/orders/challenge-removals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { lendZone, type MemoryZone } from './engine-vault.ts';

export type Moment = 'before' | 'after';

/** An operation: the `nth`, from 1, of those that are called so. */
export type Operation = { readonly what: string; readonly nth: number };

/** Called and awaited before and after each operation, numbered from 1. */
export type Watcher = (at: Operation & { readonly number: number; readonly moment: Moment }) => unknown;

export type Worker = {
  /** The vault of the worker: the same database, but nothing shared in memory. */
  readonly vault: Vault;
  /** `POST /new-order`, `write`, `present _acme-challenge.www.example.test` … */
  readonly operations: string[];
  /** Kills the worker: none of its operations happen from now on. */
  readonly die: () => void;
  readonly died: Promise<void>;
};

export async function workerOn(
  vault: Vault,
  zone: MemoryZone,
  watch: Watcher = () => undefined,
): Promise<Worker> {
  const operations: string[] = [];
  const death = Promise.withResolvers<void>();
  const never = new Promise<never>(() => undefined);
  let isDead = false;
  const living = async <T>(work: Promise<T>): Promise<T> => {
    try {
      const result = await work;
      return isDead ? never : result;
    } catch (error) {
      if (isDead) return never;
      throw error;
    }
  };
  const watched = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    if (isDead) return never;
    const number = operations.push(what);
    const at = { what, nth: operations.filter((one) => one === what).length, number };
    await living(Promise.resolve(watch({ ...at, moment: 'before' })));
    try {
      return await living(work());
    } finally {
      await living(Promise.resolve(watch({ ...at, moment: 'after' })));
    }
  };
  const world = {
    now: vault.world.now,
    elapsed: vault.world.elapsed,
    randomBytes: vault.world.randomBytes,
    turn: () => living(vault.world.turn()),
    sleep: (ms: number, signal?: AbortSignal) => (isDead ? never : living(vault.world.sleep(ms, signal))),
  };
  const outbound: Vault['outbound'] = (request) =>
    watched(`${request.method} ${new URL(request.url).pathname.replace(/\d+/, 'N')}`, () =>
      vault.outbound(request),
    );
  const write: Vault['db']['write'] = (work) => watched('write', () => vault.db.write(work));
  const db = new Proxy(vault.db, {
    get: (target, name) => (name === 'write' ? write : bound(target, name)),
  });
  const change = (what: 'present' | 'remove') => (record: TxtRecord, signal: AbortSignal) =>
    watched(`${what} ${record.name}`, () => zone.provider[what](record, signal));
  const own: Vault = {
    ...vault,
    ...{ world, db, outbound },
    acme: new AcmeClients({ world, outbound, log: vault.log }),
    dns: new OpenedDnsProviders({ ...vault.dns.context, world, outbound, resolver: zone.resolver }),
    turns: new KeyedMutex(),
    removals: new ChallengeRemovals(),
    renewalQueued: new Signal(world),
  };
  await lendZone(own, { ...zone, provider: { present: change('present'), remove: change('remove') } });
  const die = () => {
    isDead = true;
    death.resolve();
  };
  return { vault: own, operations, die, died: death.promise };
}

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === 'function' ? value.bind(target) : value;
}
