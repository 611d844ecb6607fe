/**
 * Certificate names that begin with a dash: new ones are rejected, and existing ones work in commands, clients and
 * jobs.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { installer, machine } from '../harness/client/installer.ts';
import { usual } from '../harness/client/vault.ts';
import { outside } from '../harness/database/outside-database.ts';
import { commandLine } from '../harness/processes/command-line.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve } from '../harness/processes/vault-process.ts';

/** A vault with the certificate `-run`, as earlier versions let it be created, and a key that may read it. */
async function withDash(t: TestContext) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=run', '--domain=a.test');
  outside(line.data, (db) => db.exec(`update certificates set name = '-run'`));
  const scopes = ['--scope=certificates:read', '--scope=private_keys:read'];
  const { stdout } = await line.done('api-key', 'create', '--name=k', ...scopes, '--certificate=-run');
  return { ...line, key: stdout.trim() };
}

const rule =
  /"-web" is not a name: a certificate name has .*, does not begin with a dot or a dash, and is not just "\*"/;

test('create and apply reject a new certificate name that begins with a dash', async (t) => {
  const { refused, done, file } = commandLine(t);
  await refused(['certificate', 'create', '--name=-web', '--domain=a.test'], rule);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const desired = (name: string) => file(`version: 1\ncertificates: {${name}: {domains: [a.test]}}\n`);
  await refused(['apply', '--yes', '-f', desired('-web')], rule);
  await done('apply', '--yes', '-f', desired('web'));
});

test('commands and downloads work for an existing certificate name that begins with a dash', async (t) => {
  const { done, json, data, key, file } = await withDash(t);
  assert.match((await done('certificate', 'show', '--name=-run')).stdout, /-run/);
  await done('certificate', 'renew', '--name=-run', '--wait');
  await done('certificate', 'update', '--name=-run', '--domain=b.test');
  const exported = (await done('export')).stdout;
  assert.match(exported, /^ {2}"?-run"?:/m);
  assert.match((await done('apply', '--yes', '-f', file(exported))).stdout, /^No changes\.$/m);
  const server = await serve(t, data);
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(`${server.url}/api/v1/certificates/-run/private.key`, { headers });
  assert.equal(response.status, 200);
  assert.equal((await json<unknown[]>('certificate', 'list')).length, 1);
  await done('certificate', 'delete', '--name=-run', '--force');
});

test(
  'a job for a certificate name that begins with a dash is installed, run and removed',
  needs('curl'),
  async (t) => {
    const { data, key } = await withDash(t);
    const server = await serve(t, data);
    const client = machine(t);
    const environment = { SERVICE_API_KEY: key };
    const words = usual(client).map((word) => (word === 'web' ? '-run' : word));
    const installed = await client.run(['--server', server.url, ...words], { environment });
    assert.equal(installed.code, 0, installed.stderr);
    const [job = ''] = client.jobs();
    assert.match(job, /^-run-\d+$/);
    const scheduled = /\/bin\/sh .*$/m.exec(client.crontab())?.[0] ?? '';
    assert(scheduled.includes(`--run ${job}`), scheduled);
    for (const args of [['--run', job], [`--run=${job}`], ['--run'], ['--status', job], ['--status']]) {
      const { code, stderr } = await client.run(args, { script: client.copy() });
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    }
    const removed = await client.run(['--uninstall', job], { script: installer });
    assert.equal(removed.code, 0, removed.stderr);
    assert.deepEqual([client.jobs(), client.crontab().includes(join('jobs', job))], [[], false]);
  },
);
