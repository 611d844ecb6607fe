/** `vault apply` for deploy targets: their certificates, and settings that are in files next to the document. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { webhookReceiver } from '../../../harness/http/webhook-receiver.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;

const document = (targets: string) => `version: 1
certificates:
  web: {domains: [www.example.test]}
  api: {domains: [api.example.test]}
${targets}`;

const shop = (certificates: string, reference = '{file: shop.yaml}') =>
  document(
    `deploy_targets:\n  shop: {type: webhook, certificates: [${certificates}], secret: ${reference}}\n`,
  );

/** A command line with the settings of a webhook target next to `desired.yaml`, which `apply` writes and applies. */
async function withSettings(t: TestContext) {
  const line = commandLine(t);
  const receiver = await webhookReceiver(t);
  const settings = (url: string) => line.file(`url: ${url}\nsecret: ${secret}\n`, 'shop.yaml');
  settings(receiver.url);
  const apply = (text: string, ...options: readonly string[]) =>
    line.run('apply', '-f', line.file(text, 'desired.yaml'), ...options);
  const states = async () =>
    (
      await line.json<{ certificate: string; state: string }[]>(...commandWords('deploy-target show shop'))
    ).map(({ certificate, state }) => [certificate, state]);
  return { ...line, receiver, settings, apply, states };
}

test('a new target is created after its certificates, and a second run does nothing', async (t) => {
  const { apply, done, holds, receiver, states } = await withSettings(t);
  const { code, stdout, stderr } = await apply(shop('web'));
  assert.equal(code, 0, stderr);
  const shown = '+ deploy-target shop\n    type: webhook\n    certificates: [web]\n    secret: (secret)\n';
  assert(stdout.endsWith(`${shown}\n3 to create, 0 to change, 0 to remove\n`), stdout);
  assert(!`${stdout}${stderr}`.includes('whsec_') && !holds(secret));
  await done(...commandWords('deploy-target run shop'));
  assert.equal(receiver.received.length, 1);
  assert.deepEqual(await apply(shop('web')), { code: 0, stdout: 'No changes.\n', stderr: '' });
  assert.deepEqual(await states(), [['web', 'current']]);
});

test('other certificates keep what is installed, and other settings make all certificates due', async (t) => {
  const { apply, done, settings, states } = await withSettings(t);
  await apply(shop('web'));
  await done(...commandWords('deploy-target run shop'));
  const changed = await apply(shop('web, api', 'keep'));
  assert.equal(
    changed.stdout,
    '~ deploy-target shop\n    certificates: [web] → [web, api]\n\n0 to create, 1 to change, 0 to remove\n',
  );
  assert.deepEqual(await states(), [
    ['api', 'waiting'],
    ['web', 'current'],
  ]);
  settings('https://other.example.test/');
  const replaced = await apply(shop('web, api'));
  assert.equal(
    replaced.stdout,
    '~ deploy-target shop\n    secret: (secret) → (new secret)\n\n0 to create, 1 to change, 0 to remove\n',
  );
  assert.deepEqual(await states(), [
    ['api', 'waiting'],
    ['web', 'waiting'],
  ]);
});

test('--prune removes a target before its certificates, and an exported document changes nothing', async (t) => {
  const { apply, done } = await withSettings(t);
  await apply(shop('web, api'));
  const exported = (await done('export')).stdout;
  assert.match(
    exported,
    /^deploy_targets:\n {2}shop:\n {4}type: webhook\n {4}certificates:\n {6}- api\n {6}- web\n {4}secret: keep\n/m,
  );
  assert.equal((await apply(exported, '--prune')).stdout, 'No changes.\n');
  const pruned = await apply(
    'version: 1\ncertificates:\n  api: {domains: [api.example.test]}\n',
    '--prune',
    '--yes',
  );
  assert.equal(pruned.code, 0, pruned.stderr);
  assert.equal(
    pruned.stdout,
    '- deploy-target shop\n- certificate web: deletes all its versions and keys\n\n0 to create, 0 to change, 2 to remove\n',
  );
});

test('impossible targets are reported by line, and nothing is changed', async (t) => {
  const { apply, file, done } = await withSettings(t);
  await apply(shop('web'));
  file('url: https://a.test/\nsecrat: hunter2\n', 'wrong.yaml');
  const target = (settings: string) => document(`deploy_targets:\n  new: {${settings}}\n`);
  const cases: readonly (readonly [text: string, message: string, ...options: string[]])[] = [
    [target('type: webhok'), 'deploy_targets.new.type: write one of: ssh, kubernetes, webhook, exec, '],
    [
      target('type: webhook'),
      'deploy_targets.new.secret: missing for a new deploy target; name the file with its settings: {file: NAME}',
    ],
    [
      target('type: webhook, secret: {file: wrong.yaml}'),
      'deploy_targets.new.secret: invalid settings for webhook: ',
    ],
    [
      target('type: webhook, secret: hunter2'),
      'deploy_targets.new.secret: secrets do not belong in this file',
    ],
    [
      target('type: webhook, certificates: [wep], secret: {file: shop.yaml}'),
      'deploy_targets.new.certificates.0: unknown certificate "wep"',
    ],
    [
      shop('web').replace('webhook', 'exec').replace('{file: shop.yaml}', 'keep'),
      'deploy_targets.shop.type: deploy target shop is of type webhook, which cannot be changed; choose another name',
    ],
    [
      shop('web').replace(/^ {2}web:.*\n/m, ''),
      'deploy_targets.shop.certificates.0: certificate web would be removed, but this target lists it',
      '--prune',
    ],
  ];
  for (const [text, message, ...options] of cases) {
    const { code, stdout, stderr } = await apply(text, ...options);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, /^vault: \S+desired\.yaml:\d+: /);
    assert(stderr.includes(`: ${message}`), stderr);
    assert(stderr.endsWith('  Nothing was changed.\n') && !stderr.includes('hunter2'), stderr);
  }
  assert.match((await done('deploy-target', 'list')).stdout, /^TARGET .*\nshop .*\n$/);
});
