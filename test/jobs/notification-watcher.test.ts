/** The watcher of what the clock brings about: once a minute, whatever goes wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, minute } from '../../src/base/duration.ts';
import { updateEndpoint } from '../../src/db/tables/endpoints.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { deploymentReport } from '../../src/domain/deployments/deployment-inputs.ts';
import { reportDeployment } from '../../src/domain/deployments/deployment-reports.ts';
import { addEndpoint } from '../../src/domain/endpoints/endpoint-changes.ts';
import { createEndpointInput } from '../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../src/domain/inputs.ts';
import { runNotificationWatcher } from '../../src/jobs/notification-watcher.ts';
import { eventually } from '../harness/eventually.ts';
import { makeKey } from '../harness/http/fixtures.ts';
import { makeCertificate } from '../harness/issuance/renewal-fixtures.ts';
import { addWebhook, toldIn } from '../harness/notifications/fixtures.ts';
import { testVault } from '../harness/test-vault.ts';

test('expiries, silent deployments, unhealthy endpoints, overdue backups and digests are notified within a minute, once each, by any number of watchers', async (t) => {
  const { vault, world, log } = await testVault(t);
  await addWebhook(vault, 'http://127.0.0.1:1/', { digest_at: '07:00' });
  await makeCertificate(vault, 'web', { lifetime: '10d' });
  const report = parseInput(deploymentReport, { host: 'www1', job: 'one', destination: '/tls' });
  const { id } = await makeKey(vault);
  await reportDeployment(vault, localCli, id, { certificate: 'web', name: 'one' }, report);
  const endpoint = parseInput(createEndpointInput, { address: 'shop.test' });
  const endpointId = await addEndpoint(vault, localCli, endpoint);
  await vault.db.write((writer) => updateEndpoint(writer, endpointId, { failures: 2, error: 'closed' }));
  const stop = new AbortController();
  const plan = { directory: '/backup', every: day, keep: 7 };
  const jobs = [1, 2, 3].map(() => runNotificationWatcher(vault, plan, stop.signal));
  await world.sleeping(3);
  world.advance(10 * day);
  await eventually('all is told', async () => (await toldIn(vault)).length >= 5 || undefined);
  await world.sleeping(3);
  for (let minutes = 0; minutes < 3; minutes += 1) {
    world.advance(minute);
    await world.sleeping(3);
  }
  assert.deepEqual((await toldIn(vault)).sort(), [
    ...['backup.overdue', 'certificate.expiring web'],
    ...['deployment.unhealthy web on www1 (one)', 'digest', 'endpoint.unhealthy shop.test:443 (shop.test)'],
  ]);
  assert.deepEqual(log.lines, []);
  stop.abort();
  await Promise.all(jobs);
});

test('a failed check is logged and retried a minute later', async (t) => {
  const { vault, world, log } = await testVault(t);
  await addWebhook(vault, 'http://127.0.0.1:1/');
  await makeCertificate(vault, 'web', { lifetime: '10d' });
  world.advance(11 * day);
  let troubles = 1;
  const db = new Proxy(vault.db, {
    get: (target, name) => {
      if (name === 'write' && troubles-- > 0) return () => Promise.reject(new Error('the disk is full'));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const stop = new AbortController();
  const job = runNotificationWatcher({ ...vault, db }, undefined, stop.signal);
  await world.sleeping(1);
  assert.deepEqual(await toldIn(vault), []);
  assert(log.lines.some((line) => line.includes('disk is full')));
  world.advance(minute);
  await eventually('it is told', async () => (await toldIn(vault)).length === 1 || undefined);
  stop.abort();
  await job;
});
