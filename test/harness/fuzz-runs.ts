/**
 * How often properties are tried. A usual run is short; VAULT_FUZZ_RUNS multiplies it (10 tries each property ten times as
 * often), and VAULT_FUZZ_SEED repeats a run by the seed that fast-check prints when a property fails.
 */
import type { Parameters } from 'fast-check';

/** Parameters of `fc.assert` for a property that is usually tried `usual` times. */
export function fuzzRuns(usual: number): Pick<Parameters<unknown>, 'numRuns' | 'seed'> {
  const factor = Number(process.env.VAULT_FUZZ_RUNS ?? '1');
  if (!(factor > 0)) throw new Error('VAULT_FUZZ_RUNS is a number above 0, such as 10');
  const seed = process.env.VAULT_FUZZ_SEED;
  return { numRuns: Math.ceil(usual * factor), ...(seed !== undefined && { seed: Number(seed) }) };
}
