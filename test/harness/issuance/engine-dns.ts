/** A renewal engine whose CA validates dns-01 in an in-memory zone, and the cleanup job. */
import { hash } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { Vault } from '../../../src/domain/vault.ts';
import { runChallengeCleaner } from '../../../src/jobs/periodic-jobs.ts';
import type { Validation } from '../ca/scripted-acme-ca.ts';
import { Refusal } from '../ca/scripted-acme-jws.ts';
import { type Engine, engine } from './engine-vault.ts';

/** Also records the names that the CA queried, and the number of values at each. */
export type LookingEngine = Engine & { readonly sights: (readonly [name: string, values: number])[] };

/** A vault with a provider for `example.test`, and a CA that validates dns-01 only. */
export async function lookingEngine(
  t: TestContext,
  options: Parameters<typeof engine>[1] = {},
): Promise<LookingEngine> {
  const sights: [string, number][] = [];
  const validate = ({ type, identifier, keyAuthorization }: Validation) => {
    if (type !== 'dns-01') return undefined;
    const alias = `_acme-challenge.${identifier}`;
    const name = opened.zone.aliases.get(alias) ?? alias;
    const values = opened.zone.records.get(name);
    sights.push([name, values?.size ?? 0]);
    const value = hash('sha256', keyAuthorization, 'base64url');
    return values?.has(value) ? undefined : new Refusal('unauthorized', `nothing at ${name}`);
  };
  const opened: Engine = await engine(t, { zones: ['example.test'], ...options, validate });
  return { ...opened, sights };
}

/** Runs this many rounds of the challenge cleanup. Returns the waits between them. */
export async function cleanRounds(vault: Vault, rounds: number): Promise<number[]> {
  const stop = new AbortController();
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    // The rows are read, and what was begun has ended.
    await vault.world.turn();
    await vault.removals.idle();
    waits.push(ms);
    if (waits.length >= rounds) stop.abort();
  };
  const { now, elapsed, randomBytes, turn } = vault.world;
  // Only the job's own waits; its work uses the clock of the test.
  const waiting = {
    now,
    elapsed,
    randomBytes,
    turn,
    sleep: (ms: number, signal?: AbortSignal) =>
      signal === stop.signal ? sleep(ms) : vault.world.sleep(ms, signal),
  };
  await runChallengeCleaner({ ...vault, world: waiting }, stop.signal);
  return waits;
}
