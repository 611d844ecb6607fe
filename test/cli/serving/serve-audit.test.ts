/**
 * `vault serve` with its audit events handed on: all of them, through kill -9 and logrotate, and never in the way of a
 * download.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { auditJobs } from '../../../src/cli/serving/serve-audit.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { eventually } from '../../harness/eventually.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { type RunningVault, serve } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';

async function prepared(t: TestContext) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  const scope = '--scope=certificates:read';
  const key = (await line.done('api-key', 'create', '--name=k', scope, '--certificate=web')).stdout.trim();
  const download = async ({ url }: RunningVault) => {
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/api/v1/certificates/web/fullchain.crt`, { headers });
    await response.text();
    return response.status;
  };
  const recorded = () =>
    outside(line.data, (db) =>
      db
        .prepare("select id from audit_events where action = 'certificate.download' order by id")
        .pluck()
        .all(),
    ) as number[];
  return { ...line, dir: dirname(line.data), download, recorded };
}

function downloadsIn(...paths: string[]): number[] {
  const lines = paths.flatMap((path) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []));
  const events = lines.filter(Boolean).map((line) => JSON.parse(line) as { id: number; action: string });
  return events.filter(({ action }) => action === 'certificate.download').map(({ id }) => id);
}

test('--audit-file gets every event, through a rename and a kill -9', async (t) => {
  const { data, dir, download, recorded } = await prepared(t);
  const path = join(dir, 'audit.jsonl');
  const begin = () => serve(t, data, { args: ['--audit-file', path] });
  const cursor = () =>
    outside(data, (db) => db.prepare("select 1 from settings where key = 'audit-file-cursor'").get());
  const server = await begin();
  await eventually('the feed has begun', cursor);
  for (let n = 0; n < 5; n += 1) assert.equal(await download(server), 200);
  await eventually('events are in the file', () => downloadsIn(path).length >= 5 || undefined);
  renameSync(path, `${path}.1`);
  for (let n = 0; n < 5; n += 1) await download(server);
  await server.end('SIGKILL');
  const next = await begin();
  await download(next);
  const all = recorded();
  assert.equal(all.length, 11);
  const found = await eventually('all events are in the files', () => {
    const ids = new Set(downloadsIn(`${path}.1`, path));
    return all.every((id) => ids.has(id)) ? ids : undefined;
  });
  assert.equal(found.size, 11);
  await next.end();
});

test('an unreachable syslog server does not fail downloads and gets all events later', async (t) => {
  const { data, download, recorded } = await prepared(t);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  const running = await serve(t, data, { args: ['--audit-syslog', `tcp://127.0.0.1:${port}`] });
  await eventually('the feed has begun', () =>
    outside(data, (db) => db.prepare("select 1 from settings where key = 'audit-syslog-cursor'").get()),
  );
  for (let n = 0; n < 20; n += 1) assert.equal(await download(running), 200);
  await eventually('it says so', () => /failed to deliver audit events/.test(running.log()) || undefined);
  let seen = '';
  const back = createServer((socket) =>
    socket.on('data', (bytes) => (seen += bytes)).on('error', () => undefined),
  );
  t.after(() => back.close());
  back.listen(port, '127.0.0.1');
  const all = recorded();
  assert.equal(all.length, 20);
  await eventually('all are there', () => all.every((id) => seen.includes(`{"id":${id},`)) || undefined);
  await eventually(
    'and it says so',
    () => /delivery of audit events resumed/.test(running.log()) || undefined,
  );
  assert.equal((await running.end()).code, 0);
});

test('a missing syslog CA file at delivery is logged as a warning, and delivery is retried', async (t) => {
  const dataDir = tempDir(t);
  const { vault, world, log } = await testVault(t, { dataDir });
  const stop = new AbortController();
  const url = 'tls://127.0.0.1:1';
  const audit = {
    ...settingsFor(dataDir).audit,
    syslog: { url, transport: 'tls', host: '127.0.0.1', port: 1 } as const,
    syslogCaFile: join(dataDir, 'ca.pem'),
  };
  const jobs = auditJobs(vault, audit, stop.signal);
  t.after(() => stop.abort());
  await world.sleeping(1);
  await makeCertificate(vault, 'web');
  world.advance(1000);
  const warning = await eventually('the warning', () => log.lines.find((line) => line.includes('ca.pem')));
  assert.match(warning, /"failed to deliver audit events; retrying"/);
  await world.sleeping(1);
  stop.abort();
  assert.deepEqual(await Promise.all(jobs), [undefined]);
});

test('serve rejects an --audit-syslog-ca file that is missing or has no certificate', async (t) => {
  const { data, dir, refused } = await prepared(t);
  const path = join(dir, 'ca.pem');
  const words = ['serve', '--audit-syslog=tls://127.0.0.1:6514', `--audit-syslog-ca=${path}`];
  await refused(words, /^vault: --audit-syslog-ca: cannot read .*ca\.pem: no such file/);
  writeFileSync(path, 'x');
  await refused(words, /^vault: --audit-syslog-ca: no certificate in .*ca\.pem\n {2}Use a PEM file/);
  assert(existsSync(data));
});
