/** The job that keeps the mark of a served database up to date. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { minute } from '../../src/base/duration.ts';
import { beginServing } from '../../src/domain/instance/served-vault.ts';
import { readMark } from '../../src/domain/instance/vault-mark.ts';
import { runMarkWriter } from '../../src/jobs/periodic-jobs.ts';
import { addCertificates } from '../harness/database/marked-vault.ts';
import { ofFiles } from '../harness/database/tested-engine.ts';
import { eventually } from '../harness/eventually.ts';
import { testVault } from '../harness/test-vault.ts';

test(
  'the mark is updated once a minute, only after changes, and written again after a failure',
  ofFiles('its mark'),
  async (t) => {
    const { vault, world, dataDir, log } = await testVault(t);
    const path = join(dataDir, 'vault.mark');
    const versions = () => {
      const mark = readMark(path, vault.keyring);
      return typeof mark === 'object' ? mark.versions : undefined;
    };
    await beginServing(vault);
    const stop = new AbortController();
    const job = runMarkWriter(vault, stop.signal);
    const pass = async () => {
      await world.sleeping(1);
      world.advance(minute);
      await world.sleeping(1);
    };
    await addCertificates(vault, 'a');
    assert.equal(versions(), 0);
    await pass();
    await eventually('the mark', () => versions() === 1 || undefined);
    const { ino } = statSync(path);
    const content = readFileSync(path, 'utf8');
    await pass();
    assert.deepEqual([statSync(path).ino, readFileSync(path, 'utf8')], [ino, content], 'not written again');
    rmSync(path);
    mkdirSync(join(path, 'in-the-way'), { recursive: true });
    await addCertificates(vault, 'b');
    await pass();
    await eventually(
      'the log',
      () => log.lines.some((line) => line.includes('failed to write the mark of the database')) || undefined,
    );
    rmSync(path, { recursive: true });
    await pass();
    await eventually('the mark again', () => versions() === 2 || undefined);
    stop.abort();
    await job;
  },
);
