/**
 * What systemd hears from a vault that it runs: when it is up, that it is well, and when it ends. A real datagram
 * socket listens in systemd's place; that systemd itself acts on it is not tried here, as tests have none to
 * themselves.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { supervisorIn } from '../../../src/cli/serving/supervisor.ts';
import type { Environment } from '../../../src/cli/terminal/terminal.ts';
import { eventually } from '../../harness/eventually.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { serve } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { keptLog } from '../../harness/test-vault.ts';

const programs = { ...needs('nc'), ...needs('systemd-notify') };

test(
  'a server sends READY=1 with its address, then WATCHDOG=1, and STOPPING=1 when it stops',
  programs,
  async (t) => {
    const { next, environment } = await listener(t);
    const data = join(tempDir(t), 'data');
    const server = await serve(t, data, { environment: { ...environment, WATCHDOG_USEC: '200000' } });
    assert.equal(await next(), `READY=1\nSTATUS=listening on ${server.url}`);
    for (let sign = 0; sign < 3; sign++) {
      assert.equal(await next(), `WATCHDOG=1\nSTATUS=listening on ${server.url}`);
    }
    assert.deepEqual(await server.end(), { code: 0, signal: null });
    let last = await next();
    while (last.startsWith('WATCHDOG=1')) last = await next();
    assert.equal(last, 'STOPPING=1\nSTATUS=stopping');
    assert.doesNotMatch(server.log(), /"level":"(warn|error)"/);
  },
);

test(
  'a server with a failing database sends the failed checks instead of WATCHDOG=1, and recovers',
  programs,
  async (t) => {
    const { next, environment } = await listener(t);
    const data = join(tempDir(t), 'data');
    const { url } = await serve(t, data, { environment: { ...environment, WATCHDOG_USEC: '200000' } });
    const rename = (from: string, to: string) => {
      const db = new BetterSqlite3(join(data, 'vault.db'));
      db.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
      db.close();
    };
    assert.match(await next(), /^READY=1\n/);
    rename('settings', 'gone');
    let message = await next();
    while (message.startsWith('WATCHDOG=1')) message = await next();
    for (let time = 0; time < 3; time++) {
      assert.equal(message, 'STATUS=not working: database, master_key');
      message = await next();
    }
    rename('gone', 'settings');
    while (message.startsWith('STATUS=not working')) message = await next();
    assert.equal(message, `WATCHDOG=1\nSTATUS=listening on ${url}`);
  },
);

test('a server without systemd-notify serves requests and logs one warning', async (t) => {
  const data = join(tempDir(t), 'data');
  const environment = { NOTIFY_SOCKET: join(data, 'none'), WATCHDOG_USEC: '20000', PATH: '/nonexistent' };
  const server = await serve(t, data, { environment });
  for (let request = 0; request < 20; request++) {
    assert.equal((await fetch(new URL('/api/v1/health', server.url))).status, 200);
  }
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  const warnings = server.log().match(/"level":"warn".*/g) ?? [];
  assert.equal(warnings.length, 1, server.log());
  assert.match(warnings[0] ?? '', /spawn systemd-notify ENOENT.*sd_notify failed/);
});

test('messages arrive in the order in which they were sent', programs, async (t) => {
  const { next, environment } = await listener(t);
  const log = keptLog();
  const { notify } = supervisorIn({ PATH: process.env.PATH, ...environment }, log);
  const told = Array.from({ length: 20 }, (_, index) => `STATUS=${index}`);
  const carried = told.map((status) => notify(status));
  for (const status of told) assert.equal(await next(), status);
  await Promise.all(carried);
  assert.deepEqual(log.lines, []);
});

test(
  'repeated messages that cannot be delivered are logged once, and again after a recovery',
  programs,
  async (t) => {
    const path = join(tempDir(t), 'notify');
    const { next, environment, end } = await listener(t, path);
    const log = keptLog();
    const { notify } = supervisorIn({ PATH: process.env.PATH, ...environment }, log);
    await notify('READY=1');
    assert.equal(await next(), 'READY=1');
    await end();
    for (let time = 0; time < 3; time++) await notify('WATCHDOG=1');
    assert.equal(log.lines.length, 1);
    assert.match(log.lines[0] ?? '', /systemd-notify exited with 1/);
    const again = await listener(t, path);
    await notify('WATCHDOG=1');
    assert.equal(await again.next(), 'WATCHDOG=1');
    await again.end();
    assert.equal(log.lines.length, 1);
    for (let time = 0; time < 2; time++) await notify('WATCHDOG=1');
    assert.equal(log.lines.length, 2);
  },
);

const watched: readonly (readonly [title: string, environment: Environment, interval: number | undefined])[] =
  [
    ['without NOTIFY_SOCKET', { WATCHDOG_USEC: '60000000' }, undefined],
    ['without WATCHDOG_USEC', { NOTIFY_SOCKET: '/s' }, undefined],
    [
      'with WATCHDOG_PID of another process',
      { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '1', WATCHDOG_PID: '1' },
      undefined,
    ],
    ['with WATCHDOG_USEC of 0', { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '0' }, undefined],
    ['with WATCHDOG_USEC that is not a number', { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: 'x' }, undefined],
    [
      'with WATCHDOG_PID of this process',
      { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '60000000', WATCHDOG_PID: `${process.pid}` },
      60_000,
    ],
    ['without WATCHDOG_PID', { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '1500000' }, 1500],
  ];
for (const [title, environment, interval] of watched) {
  test(`the watchdog interval is ${interval ?? 'undefined'} ${title}`, () => {
    assert.equal(supervisorIn(environment, keptLog()).watchdogInterval, interval);
  });
}

test('without a socket, nothing is sent', async () => {
  const log = keptLog();
  await supervisorIn({ PATH: '/nonexistent' }, log).notify('READY=1');
  assert.deepEqual(log.lines, []);
});

/** A socket as systemd's. systemd-notify ends each message with another one, BARRIER=1, and waits until it was read. */
async function listener(t: TestContext, path = join(tempDir(t), 'notify')) {
  rmSync(path, { force: true });
  const nc = spawn('nc', ['-lkUu', path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => nc.once('exit', resolve));
  const end = () => {
    nc.kill();
    return ended;
  };
  t.after(end);
  await eventually('the socket is there', () => existsSync(path) || nc.exitCode !== null);
  const messages = messagesIn(nc.stdout.setEncoding('utf8'));
  return { next: async () => (await messages.next()).value, environment: { NOTIFY_SOCKET: path }, end };
}

async function* messagesIn(chunks: AsyncIterable<string>): AsyncGenerator<string, never> {
  let seen = '';
  for await (const chunk of chunks) {
    seen += chunk;
    const all = seen.split('BARRIER=1');
    seen = all.pop() ?? '';
    yield* all;
  }
  throw new Error(`the listener ended after: ${seen}`);
}
