/** Short runs of chambers for `npm test`, with a random seed that the report shows. */
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { fromExecutable } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { chanceFrom, type Order } from './chamber.ts';

/** An order for the built executable; VAULT_TORTURE_SEED repeats an earlier one. */
export function shortOrder(t: TestContext): Order {
  const seed = process.env.VAULT_TORTURE_SEED ?? randomBytes(4).toString('hex');
  t.diagnostic(`VAULT_TORTURE_SEED=${seed}`);
  return {
    program: fromExecutable[0],
    folder: tempDir(t),
    chance: chanceFrom(seed),
    amount: () => undefined,
    say: (line) => t.diagnostic(line),
  };
}
