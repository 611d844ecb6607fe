/**
 * The number of runs of properties. A usual run is short; VAULT_FUZZ_RUNS multiplies it, and VAULT_FUZZ_SEED repeats a
 * run with the seed that fast-check prints when a property fails.
 */
import type { Parameters } from 'fast-check';

/** Parameters of `fc.assert` for a property with `usual` runs by default. */
export function fuzzRuns(usual: number): Pick<Parameters<unknown>, 'numRuns' | 'seed'> {
  const factor = Number(process.env.VAULT_FUZZ_RUNS ?? '1');
  if (!(factor > 0)) throw new Error('VAULT_FUZZ_RUNS must be a number above 0, such as 10');
  const seed = process.env.VAULT_FUZZ_SEED;
  return { numRuns: Math.ceil(usual * factor), ...(seed !== undefined && { seed: Number(seed) }) };
}
