/** The short form of each trouble: begins under a serving executable, lasts a second, ends, and all is well. */
import { test } from 'node:test';
import { needs } from '../harness/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { endure, troubles } from './faults.ts';

for (const trouble of troubles) {
  const isThere = trouble.needs === undefined ? {} : needs(trouble.needs);
  test(`in trouble nothing untrue is answered, and it passes: ${trouble.title}`, isThere, async (t) => {
    t.diagnostic(JSON.stringify(await endure(t, tempDir(t), trouble, 1500)));
  });
}
