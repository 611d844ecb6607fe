/** What metrics cost and say of many certificates. (Who gets them: cli/serving/open-metrics.test.ts.) */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { updateEndpoint } from '../../../src/db/tables/endpoints.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deploymentReport } from '../../../src/domain/deployments/deployment-inputs.ts';
import { reportDeployment } from '../../../src/domain/deployments/deployment-reports.ts';
import { addEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { createEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { type Metrics, metricsText } from '../../../src/http/metrics/metrics.ts';
import { addStagingCa, caExpiry, exportRoot } from '../../harness/ca/private-ca-fixtures.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { testedEngine } from '../../harness/database/tested-engine.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { addWebhook, deliverAll, failRenewal } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const metrics: Metrics = {
  isOpenTo: () => true,
  series: async () => ({ vault_downloads_total: 1 }),
  families: {},
  backupEvery: 3_600_000,
};

async function textOf(
  vault: Vault,
  label?: string,
): Promise<{ readonly text: string; readonly longest: number }> {
  const pieces: string[] = [];
  for await (const piece of metricsText(vault, '1.2.3', { ...metrics, label }, 3)) pieces.push(piece);
  const lines = pieces.map((piece) => piece.split('\n').length);
  return { text: pieces.join(''), longest: Math.max(...lines) };
}

test('metrics of 10,000 certificates are complete and written in pieces of at most 502 lines', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await makeCertificate(vault, 'web');
  outside(dataDir, (db) => {
    const table = db.prepare('select * from certificates').get() as Record<string, unknown>;
    const names = Object.keys(table).filter((name) => name !== 'id' && name !== 'name');
    db.exec(`insert into certificates (name, ${names.join(', ')})
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)
      select 'c' || i, ${names.join(', ')} from certificates, n where name = 'web'`);
    const version = db.prepare('select * from certificate_versions').get() as Record<string, unknown>;
    const facts = Object.keys(version).filter((name) => !['id', 'certificate_id'].includes(name));
    db.exec(`insert into certificate_versions (certificate_id, ${facts.join(', ')})
      select certificates.id, ${facts.map((name) => `v.${name}`).join(', ')}
      from certificates, certificate_versions v where certificates.name <> 'web'`);
  });
  const { text, longest } = await textOf(vault);
  assert.equal(text.match(/^vault_certificate_not_after_timestamp_seconds\{name="/gm)?.length, 10_000);
  assert.match(text, /^vault_certificates\{status="valid"\} 10000$/m);
  assert.ok(longest <= 502, `a piece of ${longest} lines`);
});

test('disabled certificates are counted but not listed, and only failing certificates report failed attempts', async (t) => {
  const { vault, dataDir } = await testVault(t);
  for (const name of ['on', 'off', 'failing']) await makeCertificate(vault, name);
  outside(dataDir, (db) => {
    db.exec("update certificates set disabled_at = 1 where name = 'off'");
    db.exec("update certificates set failed_attempts = 2 where name in ('failing', 'off')");
  });
  const { text } = await textOf(vault);
  const named = [...text.matchAll(/^(\w+)\{name="(\w+)"\}/gm)].map(([, metric, name]) => `${metric} ${name}`);
  assert.deepEqual(
    named.filter((line) => line.endsWith(' off')),
    [],
  );
  assert.deepEqual(
    named.filter((line) => line.startsWith('vault_certificate_failed_attempts')),
    ['vault_certificate_failed_attempts failing'],
  );
  assert.match(text, /^vault_certificates\{status="disabled"\} 1$/m);
  assert.match(text, /^vault_build_info\{version="1.2.3"\} 1$/m);
  assert.match(text, /^vault_backup_interval_seconds 3600$/m);
  assert.match(text, /^certificate_vault_waiting_requests 3$/m);
  assert.doesNotMatch(text, /^vault_backup_last_success_timestamp_seconds/m);
});

test('undelivered notifications are counted until they are delivered', async (t) => {
  const { vault, world } = await testVault(t);
  const receiver = await webhookReceiver(t);
  await addWebhook(vault, receiver.url);
  await addWebhook(vault, receiver.url, { name: 'other' });
  await makeCertificate(vault, 'one');
  await failRenewal(vault, 'one', 'no');
  receiver.answers.push(status(500), status(500));
  await deliverAll(vault);
  // Not attempted yet, because both channels rest.
  await makeCertificate(vault, 'new');
  await failRenewal(vault, 'new', 'no');
  assert.match((await textOf(vault)).text, /^vault_notifications_untaken 2$/m);
  world.advance(60_000);
  await deliverAll(vault);
  assert.match((await textOf(vault)).text, /^vault_notifications_untaken 0$/m);
});

test('deployments are counted by state, with 0 for a state without any', async (t) => {
  const { vault, world, dataDir } = await testVault(t);
  await makeCertificate(vault, 'web');
  const { id } = await makeKey(vault);
  const report = { host: 'www', job: 'web', destination: '/tls', version: 1 };
  const actor = { name: 'test' };
  for (const name of ['one', 'other']) {
    const target = { certificate: 'web', name };
    await reportDeployment(vault, actor, id, target, parseInput(deploymentReport, report));
  }
  const failed = parseInput(deploymentReport, { ...report, reload: { result: 'failed' } });
  await reportDeployment(vault, actor, id, { certificate: 'web', name: 'broken' }, failed);
  const counts = async () =>
    [...(await textOf(vault)).text.matchAll(/^certificate_vault_deployments\{state="(\w+)"\} (\d+)$/gm)].map(
      ([, state, count]) => `${state} ${count}`,
    );
  assert.deepEqual(await counts(), ['silent 0', 'failing 1', 'outdated 0', 'current 2']);
  world.advance(3 * day);
  assert.deepEqual(await counts(), ['silent 3', 'failing 0', 'outdated 0', 'current 0']);
  outside(dataDir, (db) =>
    db.exec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 9999)
      insert into deployments (certificate_id, api_key_id, name, host, job, destination, created_at, changed_at,
        last_seen_at, silent_at)
      select certificate_id, api_key_id, 'n' || i, host, job, destination, created_at, changed_at, last_seen_at, silent_at
      from n, deployments where deployments.name = 'one'`),
  );
  assert.deepEqual((await counts())[0], 'silent 10002');
});

test('endpoints are counted by state, with 0 for a state without any', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const ids: number[] = [];
  for (const host of ['new', 'closed', 'shop'])
    ids.push(
      await addEndpoint(vault, localCli, parseInput(createEndpointInput, { address: `${host}.test` })),
    );
  const [, closed = 0, shop = 0] = ids;
  const now = vault.world.now();
  const served = { fingerprint_sha256: 'ab'.repeat(32), not_before: now, not_after: now + 90 * day };
  await vault.db.write(async (writer) => {
    await updateEndpoint(writer, closed, { failures: 2, error: 'connection refused' });
    await updateEndpoint(writer, shop, served);
  });
  const counts = async () =>
    [...(await textOf(vault)).text.matchAll(/^certificate_vault_endpoints\{state="(\w+)"\} (\d+)$/gm)].map(
      ([, state, count]) => `${state} ${count}`,
    );
  const others = ['unknown 0', 'outdated 0', 'untrusted 0', 'expiring 0'];
  assert.deepEqual(await counts(), ['unreachable 1', 'unchecked 1', ...others, 'current 1']);
  const columns = 'server_name, starttls, trust, check_every, created_at, next_check_at, failures, error';
  outside(dataDir, (db) =>
    db.exec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 1999)
      insert into endpoints (host, port, ${columns}) select host, i, ${columns}
      from n, endpoints where endpoints.host = 'closed.test' and endpoints.port <> i`),
  );
  assert.deepEqual((await counts())[0], 'unreachable 1999');
});

test('private CAs report the expiry of their root, and of their intermediate after the root was exported', async (t) => {
  const { vault } = await testVault(t);
  await addStagingCa(vault);
  const values = async () => {
    const { text } = await textOf(vault);
    return [...text.matchAll(/^vault_private_ca_not_after_timestamp_seconds\{(.*)\} (\d+)$/gm)].map(
      ([, labels, value]) => [labels, Number(value) * 1000],
    );
  };
  const roots = [
    ['name="local-ca",role="root"', (await caExpiry(vault, 'local-ca', 'root')).at],
    ['name="staging-ca",role="root"', (await caExpiry(vault, 'staging-ca', 'root')).at],
  ];
  assert.deepEqual(await values(), roots);
  await exportRoot(vault, 'staging-ca');
  const intermediate = (await caExpiry(vault, 'staging-ca', 'intermediate')).at;
  assert.deepEqual(await values(), [...roots, ['name="staging-ca",role="intermediate"', intermediate]]);
});

test('failing database queries omit only the metrics that need them', async (t) => {
  const { vault, dataDir } = await testVault(t);
  outside(dataDir, (db) =>
    db.exec('alter table certificates rename to gone; alter table renewals rename to away'),
  );
  const { text } = await textOf(vault);
  assert.match(text, /^vault_downloads_total 1$/m);
  // A server keeps its files itself.
  const sizes = testedEngine === 'sqlite' ? ['database', 'wal'] : [];
  assert.deepEqual(
    [...text.matchAll(/^vault_database_size_bytes\{file="(\w+)"\} \d+$/gm)].map(([, file]) => file),
    sizes,
  );
  assert.doesNotMatch(text, /^vault_renewals_open/m);
});

test('metrics of certificates have the value of the chosen label if the certificate has one', async (t) => {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'web', undefined, { labels: ['cost-center=47"11', 'team=web'] });
  await makeCertificate(vault, 'plain');
  const { text } = await textOf(vault, 'cost-center');
  assert.match(text, /_issued_timestamp_seconds\{name="web",label_cost_center="47\\"11"\} /);
  assert.match(text, /_issued_timestamp_seconds\{name="plain"\} /);
  assert.doesNotMatch((await textOf(vault)).text, /label_/);
});
