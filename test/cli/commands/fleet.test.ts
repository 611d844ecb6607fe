/** `vault fleet status`: on this machine and at a server, with the exit code that scripts read. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { deploymentStates } from '../../../src/domain/deployments/deployment-state.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

async function fleet(t: TestContext) {
  const dir = tempDir(t);
  const done = async (...words: string[]) => {
    const { code, stdout, stderr } = await vault([...words, '--data-dir', dir]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  for (const name of ['web', 'mail']) {
    await done(
      'certificate',
      'create',
      '--name',
      name,
      '--domain',
      `${name}.test`,
      '--label',
      `team=${name}`,
    );
  }
  const key = await done(
    ...['api-key', 'create', '--name', 'clients', '--scope', 'certificates:read', '--certificate', '*'],
  );
  const viewer = await done('api-key', 'create', '--name', 'viewer', '--role', 'viewer');
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, viewer, { mode: 0o600 });
  const server = await serve(t, dir);
  const report = async (certificate: string, host: string, changes: object = {}) => {
    const body = { host, job: `${certificate}-1`, destination: '/tls', version: 1, ...changes };
    const response = await fetch(`${server.url}/api/v1/certificates/${certificate}/deployments/${host}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 204, await response.text());
  };
  /** The outcome, which is the same on this machine and at the server. */
  const status = async (...options: string[]) => {
    const here = await vault(['fleet', 'status', ...options, '--data-dir', dir]);
    const there = await vault(['--server', server.url, 'fleet', 'status', ...options], {
      environment: { CERTVAULT_TOKEN_FILE: tokenFile },
    });
    assert.deepEqual(there, here);
    return here;
  };
  return { report, status };
}

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z`;

test('the status lists every deployment by certificate and host, and exits with 0 if all are current', async (t) => {
  const { report, status } = await fleet(t);
  assert.deepEqual(await status(), { code: 0, stdout: '', stderr: 'No deployments yet.\n' });
  await report('web', 'web2');
  await report('web', 'web1');
  await report('mail', 'mx');
  const { code, stdout, stderr } = await status();
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(
    stdout,
    new RegExp(
      '^CERTIFICATE  HOST  JOB     VERSION  STATE    LAST SEEN +RESULT\n' +
        `mail         mx    mail-1  1        current  ${time} +-\n` +
        `web          web1  web-1   1        current  ${time} +-\n` +
        `web          web2  web-1   1        current  ${time} +-\n$`,
    ),
  );
});

test('the status exits with 1 and counts what is not current, also as JSON and in a filter', async (t) => {
  const { report, status } = await fleet(t);
  await report('web', 'web1');
  await report('web', 'web2', { reload: { result: 'failed', output: 'no\u001bsuch unit' } });
  await report('mail', 'mx', { error: 'disk full' });
  const all = await status();
  assert.equal(all.code, 1);
  assert.equal(all.stderr, 'vault: not all of 3 deployments are current: 2 failing\n');
  assert.match(all.stdout, /\nmail +mx .* failing .* disk full\n/);
  assert.match(all.stdout, /\nweb +web2 .* failing .* reload failed: no such unit\n/);
  const json = await status('--json', '--label', 'team=web');
  assert.deepEqual([json.code, json.stderr], [1, 'vault: not all of 2 deployments are current: 1 failing\n']);
  const rows = JSON.parse(json.stdout) as Record<string, unknown>[];
  assert.deepEqual(
    rows.map(({ last_seen_at, ...row }) => [row, new RegExp(`^${time}$`).test(String(last_seen_at))]),
    [
      [{ certificate: 'web', host: 'web1', job: 'web-1', version: 1, state: 'current' }, true],
      [{ certificate: 'web', host: 'web2', job: 'web-1', version: 1, state: 'failing' }, true],
    ],
  );
  assert.equal((await status('--state', 'current')).code, 0);
  assert.equal((await status('--state', 'failing')).code, 1);
  assert.deepEqual(await status('--state', 'silent'), {
    code: 0,
    stdout: '',
    stderr: 'No matching deployments.\n',
  });
  assert.equal((await status('--json', '--state', 'silent')).stdout, '[]\n');
});

test('an unknown state is a misuse, and the message has those that exist', async (t) => {
  const { status } = await fleet(t);
  const { code, stderr } = await status('--state', 'lost');
  assert.equal(code, 2);
  for (const state of deploymentStates) assert.match(stderr, new RegExp(state));
});
