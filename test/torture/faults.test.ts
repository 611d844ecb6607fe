/**
 * The short form of the faults, six in each commit: one begins while the executable serves, lasts a second and ends.
 */
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurn } from '../harness/slice.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { endure, troubles } from './faults.ts';

for (const trouble of inTurn(troubles, 6)) {
  const isThere = trouble.needs === undefined ? {} : needs(trouble.needs);
  test(
    `responses are correct during a fault, and the server recovers: ${trouble.title}`,
    isThere,
    async (t) => {
      t.diagnostic(JSON.stringify(await endure(t, tempDir(t), trouble, 1500)));
    },
  );
}
