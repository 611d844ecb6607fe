/** The short form of each fault: it begins while the executable serves, lasts a second and ends. */
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { endure, troubles } from './faults.ts';

for (const trouble of troubles) {
  const isThere = trouble.needs === undefined ? {} : needs(trouble.needs);
  test(
    `responses are correct during a fault, and the server recovers: ${trouble.title}`,
    isThere,
    async (t) => {
      t.diagnostic(JSON.stringify(await endure(t, tempDir(t), trouble, 1500)));
    },
  );
}
