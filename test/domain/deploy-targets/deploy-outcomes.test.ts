/** Certificates on deploy targets as deployments: states, notices and counts, and what keeps them from deletion. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { localCli, system } from '../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { viewDeployTarget } from '../../../src/domain/deploy-targets/deploy-target-views.ts';
import { deploy, nextDueDeploy } from '../../../src/domain/deploy-targets/deploying.ts';
import { countDeployments, pruneDeployments } from '../../../src/domain/deployments/deployments.ts';
import type { DeploymentChanges } from '../../../src/domain/notifications/notification-deployment-text.ts';
import { notifyDeployments } from '../../../src/domain/notifications/notification-deployments.ts';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';
import { status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { forever, giveVersion, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook } from '../../harness/notifications/fixtures.ts';
import { addWebhookTarget } from '../../harness/targets/deployed.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A vault with the certificate `web` on the target `hook`. */
async function prepared(t: TestContext) {
  const opened = await testVault(t);
  const { vault } = opened;
  const receiver = await webhookReceiver(t);
  await makeCertificate(vault, 'web');
  await addWebhookTarget(vault, receiver.url);
  /** Runs the next installation, if one is due. */
  const attempt = async () => {
    const due = await nextDueDeploy(vault, []);
    assert(due, 'nothing is due');
    await deploy(vault, due.id, system, forever);
  };
  const { host } = new URL(receiver.url);
  return { ...opened, receiver, attempt, host };
}

test('a deployment of a target that fails is notified with the target and the reason, and so is its recovery', async (t) => {
  const { vault, world, receiver, attempt, host } = await prepared(t);
  await addWebhook(vault, 'http://127.0.0.1:1/');
  await attempt();
  await giveVersion(vault, 'web');
  receiver.answers.push(status(500), status(503));
  const cursor = { after: 0 };
  const check = () => notifyDeployments(vault, { cursor, since: 0, most: 100 });
  await attempt();
  assert.equal(await check(), 0, 'one failure may pass by itself');
  world.advance(minute);
  await attempt();
  assert.equal(await check(), 1);
  world.advance(10 * minute);
  await attempt();
  assert.equal(await check(), 1);
  const rows = await vault.db.reader.selectFrom('notifications').selectAll().orderBy('id').execute();
  const [alarm, recovery] = rows.map(({ event, data, at }) => ({
    ...(JSON.parse(data) as DeploymentChanges),
    ...messageText(event, JSON.parse(data), at),
  }));
  assert.partialDeepStrictEqual(alarm?.deployments, [
    { id: 'deploy-target:hook', host, job: 'hook', state: 'failing', version: 1, current_version: 2 },
  ]);
  const reason = `failed to deliver the certificate: ${host} responded with 503 Service Unavailable`;
  assert.equal(alarm?.subject, `web on ${host}: failing, ${reason}`);
  assert.match(alarm.text, /hook/);
  assert.equal(recovery?.subject, `web on ${host}: current again`);
});

test('a deployment of a target is never silent, and pruning leaves it', async (t) => {
  const { vault, world, attempt } = await prepared(t);
  await attempt();
  world.advance(400 * day);
  assert.equal(await pruneDeployments(vault, forever), 0);
  assert.deepEqual(await countDeployments(vault), { silent: 0, failing: 0, outdated: 0, current: 1 });
});

test('a certificate on a target is deleted only by force, which also takes it from the target', async (t) => {
  const { vault } = await prepared(t);
  await assert.rejects(deleteCertificate(vault, localCli, 'web', { force: false }), {
    code: 'certificate_in_use',
    message: 'The vault installs "web" on deploy targets: hook.',
  });
  await deleteCertificate(vault, localCli, 'web', { force: true });
  assert.deepEqual((await viewDeployTarget(vault, 'hook')).certificates, []);
});
