/** What the doctor says about deployments: how many are failing, outdated or silent, and how to list them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deploymentReport } from '../../../src/domain/deployments/deployment-inputs.ts';
import { reportDeployment } from '../../../src/domain/deployments/deployment-reports.ts';
import { deploymentFindings } from '../../../src/domain/doctor/deployment-findings.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { makeKey } from '../../harness/http/fixtures.ts';
import { giveVersion, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('deployments are counted by state, with the command that lists them', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'web');
  const key = await makeKey(vault);
  const report = (host: string, changes: object = {}) => {
    const body = { host, job: 'web', destination: '/tls', version: 1, ...changes };
    const target = { certificate: 'web', name: host };
    return reportDeployment(vault, localCli, key.id, target, parseInput(deploymentReport, body));
  };
  const said = async () =>
    (await deploymentFindings(vault)).map(
      ({ check, status, message, hint }) => `${check} ${status}: ${message}${hint ? ` (${hint})` : ''}`,
    );
  assert.deepEqual(await said(), [], 'nothing without deployments');
  await report('silent1');
  assert.deepEqual(await said(), ['deployments ok: the only one is current']);
  await report('silent2');
  assert.deepEqual(await said(), ['deployments ok: all 2 are current']);
  world.advance(day);
  await giveVersion(vault, 'web');
  await report('outdated');
  world.advance(day + hour);
  await report('failing', { version: 2, error: 'disk full' });
  await report('current', { version: 2 });
  assert.deepEqual(await said(), [
    'deployments warning: 1 of 5 is failing: the last run, its reload or its verification failed (Try: vault fleet status --state failing)',
    'deployments warning: 1 of 5 is outdated: an older version is installed although the schedule is over (Try: vault fleet status --state outdated)',
    'deployments warning: 2 of 5 are silent: no report for two schedules (Try: vault fleet status --state silent)',
  ]);
});
