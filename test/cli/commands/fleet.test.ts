/** `vault fleet`: on this machine and at a server, with the exit code that scripts read. */
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
  const operator = await done('api-key', 'create', '--name', 'operator', '--role', 'operator');
  const tokens = tempDir(t);
  const [tokenFile, operatorFile] = [join(tokens, 'viewer'), join(tokens, 'operator')];
  writeFileSync(tokenFile, viewer, { mode: 0o600 });
  writeFileSync(operatorFile, operator, { mode: 0o600 });
  const server = await serve(t, dir);
  const report = async (certificate: string, host: string, changes: object = {}) => {
    const body = { host, job: `${certificate}-1`, destination: '/tls', version: 1, ...changes };
    const id = `${body.job}.${host}`;
    const response = await fetch(`${server.url}/api/v1/certificates/${certificate}/deployments/${id}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 204, await response.text());
  };
  const here = (...words: string[]) => vault([...words, '--data-dir', dir]);
  const at = (tokens: string, ...words: string[]) =>
    vault(['--server', server.url, ...words], { environment: { CERTVAULT_TOKEN_FILE: tokens } });
  /** The outcome, which is the same on this machine and at the server. */
  const shown = async (...words: string[]) => {
    const outcome = await here(...words);
    assert.deepEqual(await at(tokenFile, ...words), outcome);
    return outcome;
  };
  const status = (...options: string[]) => shown('fleet', 'status', ...options);
  const forget = {
    'on this machine': (...options: string[]) => here('fleet', 'forget', ...options),
    'at a server': (...options: string[]) => at(operatorFile, 'fleet', 'forget', ...options),
  };
  const renew = (name: string) => done('certificate', 'renew', '--name', name, '--wait');
  return { ...{ report, shown, status, forget, renew }, atAsViewer: at.bind(undefined, tokenFile) };
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
  assert.equal(all.stderr, 'vault: 2 of 3 deployments not current: 2 failing\n');
  assert.match(all.stdout, /\nmail +mx .* failing .* disk full\n/);
  assert.match(all.stdout, /\nweb +web2 .* failing .* reload failed: no such unit\n/);
  const json = await status('--json', '--label', 'team=web');
  assert.deepEqual([json.code, json.stderr], [1, 'vault: 1 of 2 deployments not current: 1 failing\n']);
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

test('the status of a certificate and its details begin with how far the current version has come', async (t) => {
  const { report, shown, status, renew } = await fleet(t);
  const rolloutIn = (text: string) => /^ *(?:Rollout +)?(version \d+: .*)$/m.exec(text)?.[1];
  const details = async () => rolloutIn((await shown('certificate', 'show', '--name', 'web')).stdout);
  assert.equal(await details(), undefined);
  assert.deepEqual(await status('--certificate', 'web'), {
    code: 0,
    stdout: '',
    stderr: 'No matching deployments.\n',
  });
  for (const host of ['www1', 'www2', 'www3', 'www4', 'www5']) await report('web', host);
  await report('mail', 'mx');
  await renew('web');
  const failed = { version: 2, reload: { result: 'failed', output: 'no such unit' } };
  for (const host of ['www1', 'www2', 'www3']) await report('web', host, { version: 2 });
  await report('web', 'www4', failed);
  const { code, stdout, stderr } = await status('--certificate', 'web');
  const [progress = '', empty, head, ...rows] = stdout.trimEnd().split('\n');
  assert.match(progress, new RegExp(`^version 2: issued ${time}, fetched by 4 of 5, live on 3 of 5$`));
  assert.equal(empty, '');
  assert.match(head ?? '', /^CERTIFICATE /);
  assert.deepEqual(
    rows.map((row) => row.split(/ +/, 4).slice(1)),
    ['www1', 'www2', 'www3', 'www4', 'www5'].map((host) => [host, 'web-1', host === 'www5' ? '1' : '2']),
  );
  assert.deepEqual([code, stderr], [1, 'vault: 1 of 5 deployments not current: 1 failing\n']);
  assert.equal(await details(), progress);
  const json = await status('--certificate', 'web', '--json', '--state', 'failing');
  assert.deepEqual(
    (JSON.parse(json.stdout) as { host: string }[]).map(({ host }) => host),
    ['www4'],
    'only JSON',
  );
  const unknown = await status('--certificate', 'wbe');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^vault: Unknown certificate "wbe"\./);
});

for (const place of ['on this machine', 'at a server'] as const) {
  test(`${place}, the jobs of a host, one job, or an id are forgotten, and no others`, async (t) => {
    const { report, status, forget: all } = await fleet(t);
    const forget = all[place];
    for (const host of ['www1', 'www2', 'www3']) {
      await report('web', host);
      await report('web', host, { job: 'web-2', destination: '/other' });
    }
    await report('mail', 'www1');
    const left = async () => {
      const rows = JSON.parse((await status('--json')).stdout) as {
        certificate: string;
        host: string;
        job: string;
      }[];
      return rows.map(({ certificate, host, job }) => `${certificate} ${host} ${job}`);
    };
    const web3 = ['web www3 web-1', 'web www3 web-2'];
    assert.deepEqual(await forget('--certificate', 'web', '--host', 'www1'), {
      code: 0,
      stdout: '',
      stderr: 'Deleted job web-1 on host www1 (/tls).\nDeleted job web-2 on host www1 (/other).\n',
    });
    assert.deepEqual(await left(), ['mail www1 mail-1', 'web www2 web-1', 'web www2 web-2', ...web3]);
    assert.deepEqual(await forget('--certificate', 'web', '--host', 'www2', '--job', 'web-2'), {
      code: 0,
      stdout: '',
      stderr: 'Deleted job web-2 on host www2 (/other).\n',
    });
    assert.deepEqual(await forget('--certificate', 'web', '--id', 'web-1.www2'), {
      code: 0,
      stdout: '',
      stderr: 'Deleted web-1.www2.\n',
    });
    assert.deepEqual(await left(), ['mail www1 mail-1', ...web3]);
    const again = await forget('--certificate', 'web', '--host', 'www2');
    assert.equal(again.code, 1);
    assert.match(
      again.stderr,
      /^vault: certificate web has no deployment on host www2\n.*fleet status --certificate web/,
    );
    const other = await forget('--certificate', 'web', '--host', 'www3', '--job', 'web-3');
    assert.match(other.stderr, /^vault: certificate web has no job web-3 on host www3\n/);
    assert.match((await forget('--certificate', 'web', '--id', 'x')).stderr, /Deployment not found/);
    assert.equal((await forget('--certificate', 'web')).code, 2);
    assert.equal((await forget('--certificate', 'web', '--host', 'www3', '--id', 'x')).code, 2);
    assert.deepEqual(await left(), ['mail www1 mail-1', ...web3]);
  });
}

test('a viewer forgets nothing', async (t) => {
  const { report, status, atAsViewer } = await fleet(t);
  await report('web', 'www1');
  const { code } = await atAsViewer('fleet', 'forget', '--certificate', 'web', '--host', 'www1');
  assert.equal(code, 1);
  assert.match((await status()).stdout, /www1/);
});
