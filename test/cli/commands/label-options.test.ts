/** `--label` and its kin on the command line, and labels in the document of `vault apply`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelArguments } from '../../../src/cli/commands/label-options.ts';
import { commandLine } from '../../harness/processes/command-line.ts';

type Labelled = { readonly name: string; readonly labels: readonly string[] };

test('certificates get labels, are listed by them, and lose them', async (t) => {
  const { done, run } = commandLine(t);
  const web = ['--domain=web.test', '--label', 'team=web', '--label=env=prod'];
  await done('certificate', 'create', '--name=web', ...web);
  await done('certificate', 'create', '--name=db', '--domain=db.test', '--label=team=db');
  const listed = async (...args: string[]) => {
    const { stdout } = await done('certificate', 'list', '--json', ...args);
    return (JSON.parse(stdout) as Labelled[]).map(({ name, labels }) => `${name}: ${labels.join()}`);
  };
  assert.deepEqual(await listed('--label=team=web', '--label=env=prod'), ['web: env=prod,team=web']);
  assert.deepEqual(await listed('--label=team=web', '--label=env=test'), []);
  assert.match((await done('certificate', 'list')).stdout, /LABELS *\n.*db.*team=db.*\n.*web.*env=prod/);
  await done('certificate', 'update', '--name=db', '--label=team=web');
  assert.deepEqual(await listed('--label=team=web'), ['db: team=web', 'web: env=prod,team=web']);
  await done('certificate', 'update', '--name=db', '--label=none');
  assert.deepEqual(await listed(), ['db: ', 'web: env=prod,team=web']);
  const { code, stderr } = await run('certificate', 'list', '--label', 'team');
  assert.equal(code, 1);
  assert.match(stderr, /"team" is not a label: write a label as key=value, such as team=web/);
  assert.match((await done('certificate', 'show', '--name=web')).stdout, /Labels +env=prod team=web/);
});

test('an undeleted certificate has no labels, and the command says how to set them again', async (t) => {
  const { done } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=web.test', '--label=team=web');
  await done('certificate', 'delete', '--name=web');
  const { stderr } = await done('certificate', 'undelete', '--name=web');
  assert.match(stderr, /It has no labels now.*\n.*vault certificate update --name web --label team=web/);
});

test('an API key takes labels of certificates, a reach with a role, and labels of its own', async (t) => {
  const { done, run } = commandLine(t);
  const read = '--scope=certificates:read';
  await done('api-key', 'create', '--name=web', read, '--certificate-label=team=web', '--label=app=shop');
  await done('api-key', 'create', '--name=ci', '--role=operator', '--reach=team=web');
  const keys = async (...args: string[]) =>
    JSON.parse((await done('api-key', 'list', ...args)).stdout) as Record<string, unknown>[];
  const shown = (key: Record<string, unknown> = {}) => [
    ...[key.name, key.certificates, key.certificate_labels, key.reach, key.labels],
  ];
  assert.deepEqual((await keys()).map(shown), [
    ['web', [], ['team=web'], [], ['app=shop']],
    ['ci', ['*'], [], ['team=web'], []],
  ]);
  assert.deepEqual((await keys('--label=app=shop')).length, 1);
  await done('api-key', 'update', 'web', '--certificate-label=team=db', '--label=none');
  assert.deepEqual(shown((await keys())[0]), ['web', [], ['team=db'], [], []]);
  for (const [args, message] of [
    [['update', 'web', '--certificate-label=none'], /at least one certificate name or label is required/],
    [['update', 'ci', '--role=admin'], /the role admin reaches everything/],
    [['update', 'web', '--reach=team=web'], /only keys with the role viewer or operator have a reach/],
  ] as const) {
    const { code, stderr } = await run('api-key', ...args);
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
  }
});

test('ACME clients and notification channels take labels', async (t) => {
  const { done } = commandLine(t);
  await done('acme-client', 'create', '--name=caddy', '--domain=*.test', '--label=team=web', '--json');
  const clients = async (label: string) =>
    JSON.parse((await done('acme-client', 'list', '--json', label)).stdout) as Labelled[];
  assert.deepEqual(
    (await clients('--label=team=web')).map(({ labels }) => labels),
    [['team=web']],
  );
  assert.deepEqual(await clients('--label=team=db'), []);
  const filters = ['--certificate-label=team=web', '--label=team=web'];
  await done('notification', 'add', 'webhook', '--channel=hook', '--url=https://hook.test/', ...filters);
  const [channel] = JSON.parse((await done('notification', 'list', '--json')).stdout) as Record<
    string,
    unknown
  >[];
  assert.deepEqual([channel?.certificate_labels, channel?.labels], [['team=web'], ['team=web']]);
});

test('vault apply sets and removes labels, and export has them', async (t) => {
  const { file, done } = commandLine(t);
  const document = (labels: string) => `version: 1
certificates:
  web: {domains: [web.test]${labels}}
api_keys:
  ci: {scopes: [certificates:read], certificates: [], certificate_labels: [team=web], secret_file: ci.key${labels}}
acme_clients:
  caddy: {domains: ["*.test"]${labels}}
`;
  const labelled = file(document(', labels: [team=web]'), 'labelled.yaml');
  await done('apply', '-f', labelled);
  assert.match((await done('apply', '-f', labelled)).stdout, /^No changes/);
  const exported = (await done('export')).stdout;
  assert.equal(exported.match(/^ {4}labels:/gm)?.length, 3);
  assert.match(exported, /certificate_labels:\n? *-? ?\[?team=web/);
  await done('apply', '-f', file(document(''), 'plain.yaml'));
  assert.doesNotMatch((await done('export')).stdout, /^ {4}labels:/m);
});

test('labels in a printed command are quoted where a shell needs it', () => {
  assert.equal(labelArguments(['team=web', "a=it's $x"]), "--label team=web --label 'a=it'\\''s $x'");
});
