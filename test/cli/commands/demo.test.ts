/** `vault demo`: a vault with examples to click through, of which nothing stays. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fromExecutable, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** Starts a demo in a directory for temporary files; `said` resolves when stdout or stderr has this text. */
function demo(t: TestContext, environment: Record<string, string> = {}) {
  const temporary = join(tempDir(t), 'temporary');
  mkdirSync(temporary);
  const child = spawn(fromExecutable[0], ['demo'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...environment, TMPDIR: temporary },
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const said = async (text: string) => {
    while (!output.includes(text) && child.exitCode === null)
      await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data'), ended]);
  };
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return [...(await ended), readdirSync(temporary)];
  };
  return { temporary, said, end, output: () => output };
}

type Listed = { readonly name: string; readonly status: string; readonly issuer: string | null };

test('demo serves certificates in every state, a client and a setup link, and is deleted after ^C', async (t) => {
  const own = join(tempDir(t), 'own');
  // Neither the vault of this user nor that of HashiCorp matters to a demo.
  const environment = { CERTVAULT_DATA_DIR: own, VAULT_LISTEN: 'nonsense', VAULT_LOG_LEVEL: 'trace' };
  const { said, end, output } = demo(t, environment);
  await said('Ctrl-C');
  const data = / --data-dir (\S+)/.exec(output())?.[1] ?? '';
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', data]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const listed = JSON.parse(await run('certificate', 'list', '--json')) as Listed[];
  const byStatus = Object.groupBy(listed, ({ status }) => status);
  const names = Object.fromEntries(
    Object.entries(byStatus).map(([status, list = []]) => [status, list.map(({ name }) => name)]),
  );
  assert.deepEqual(names, {
    valid: ['*.apps', 'api', 'database', 'mail', 'vpn', 'web'],
    expiring: ['intranet', 'partner', 'shop'],
    pending: ['new-site'],
    expired: ['old-shop'],
    disabled: ['staging'],
  });
  assert.match(await run('certificate', 'list', '--deleted'), /^blog /m);
  assert.match(await run('renewals', 'list', '--failed'), / shop .*connection refused/);
  // Its renewal runs when the demo says that it is there.
  let renewals = '';
  do renewals = await run('renewals', 'list', '--name', 'web');
  while (/ (?:queued|running) /.test(renewals));
  assert.match(renewals, / succeeded .*version 3/);
  const keys = JSON.parse(await run('api-key', 'list')) as { name: string; state: string }[];
  assert.deepEqual(
    keys.map(({ name, state }) => [name, state]),
    [
      ['backup-robot', 'expired'],
      ['old-laptop', 'revoked'],
      ['web-server-1', 'active'],
    ],
  );
  const download = /api-key:3:web-server-1 +certificate.download +certificate:api /;
  for (let looks = 0; !download.test(await run('audit', 'list')); looks += 1) {
    assert.ok(looks < 100, 'the client downloads');
  }
  assert.match(await run('audit', 'verify'), /intact/);
  const link = /^ {2}(http:\/\/127\.0\.0\.1:\d+)\/setup#token=(\S+)$/m.exec(output());
  assert.match(output(), /This is a demo: when it ends, with Ctrl-C, everything in it is deleted\.\n/);
  const headers = { 'Content-Type': 'application/json', Origin: link?.[1] ?? '' };
  const body = JSON.stringify({ token: link?.[2], name: 'me', password: 'four words nobody wrote' });
  const answer = await fetch(`${link?.[1]}/api/v1/setup`, { method: 'POST', headers, body });
  assert.equal(answer.status, 201, await answer.text());
  assert.ok(existsSync(data));
  assert.deepEqual(await end('SIGINT'), [0, null, []], output());
  assert.equal(existsSync(own), false);
});

for (const [signal, moment] of [
  ['SIGTERM', 'Ctrl-C'],
  ['SIGHUP', 'Ctrl-C'],
  ['SIGINT', 'Creating'],
] as const) {
  test(`demo leaves no files after ${signal} ${moment === 'Creating' ? 'while it is being created' : 'once it runs'}`, async (t) => {
    const { said, end, output } = demo(t);
    await said(moment);
    assert.deepEqual(await end(signal), [0, null, []], output());
  });
}
