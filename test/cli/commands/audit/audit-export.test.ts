/** `vault audit export`: whole files, oldest first, that other programs read, of logs of any size. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openVault } from '../../../../src/cli/runtime/open-vault.ts';
import { insertAuditEvents } from '../../../../src/db/audit/audit-insertion.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { fromExecutable } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { settingsFor } from '../../../harness/test-vault.ts';
import { TestWorld } from '../../../harness/test-world.ts';

async function fill(data: string, count: number): Promise<void> {
  const { vault, close } = await openVault(settingsFor(data), new TestWorld(), 'refuse');
  const rows = Array.from({ length: count }, (_, n) => ({
    at: Date.parse('2026-01-01T00:00:00Z') + n * 1000,
    ...{ actor: 'api-key:1:=cmd()', action: 'certificate.download', resource: 'certificate:"a,b"\n' },
    ...{ detail: JSON.stringify({ n }), ip: '192.0.2.1', request_id: `r-${n}` },
  }));
  for (let from = 0; from < count; from += 5000) {
    await vault.db.write((writer) => insertAuditEvents(writer, rows.slice(from, from + 5000)));
  }
  await close();
}

test('export writes every event once, in order, with its hash, and filters by time', async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await fill(data, 1234);
  const { stdout } = await done('audit', 'export');
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: number; hash: string });
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => index + 1),
  );
  for (const { hash } of events) assert.match(hash, /^[0-9a-f]{64}$/);
  assert.equal(new Set(events.map(({ hash }) => hash)).size, events.length);
  const some = await done('audit', 'export', '--since=2026-01-01T00:00:10Z', '--until=2026-01-01T00:00:19Z');
  assert.equal(some.stdout.trimEnd().split('\n').length, 10);
});

test('export --output creates a file with mode 0600 and does not overwrite an existing one', async (t) => {
  const { done, data, refused } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const file = join(dirname(data), 'audit.csv');
  await done('audit', 'export', '--format', 'csv', '--output', file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const before = readFileSync(file, 'utf8');
  assert.match(before, /^id,at,actor,action,resource,detail,ip,request_id,hash\r\n1,/);
  await refused(
    ['audit', 'export', '--output', file],
    `vault: ${file} already exists\n  Choose another name with --output, or move the file away. Nothing was written.\n`,
  );
  assert.equal(readFileSync(file, 'utf8'), before);
  const nowhere = join(dirname(data), 'no', 'file');
  await refused(
    ['audit', 'export', '--output', nowhere],
    /^vault: cannot write .*no\/file: no such file or directory/,
  );
});

test('an interrupted export leaves no output file, at most a draft', async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await fill(data, 60_000);
  const folder = tempDir(t);
  const file = join(folder, 'audit.jsonl');
  const [program] = fromExecutable;
  for (const signal of ['SIGKILL', 'SIGINT'] as const) {
    const child = spawn(program, ['audit', 'export', '--output', file, '--data-dir', data]);
    const ended = once(child, 'exit');
    const before = readdirSync(folder).length;
    while (child.exitCode === null && readdirSync(folder).length === before) await nextTurn();
    child.kill(signal);
    const [code] = await ended;
    assert.notEqual(code, 0, 'it was stopped before its end');
    assert.equal(existsSync(file), false);
  }
  // Of the one that was killed the draft stays, of the other nothing.
  assert.deepEqual(
    readdirSync(folder).map((name) => /^\.audit\.jsonl\.[0-9a-f]{16}\.draft$/.test(name)),
    [true],
  );
});

test('the CSV export parses in Python with all fields intact', needs('python3'), async (t) => {
  const { done, data, file } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await fill(data, 3);
  const { stdout } = await done('audit', 'export', '--format=csv', '--action=certificate.download');
  const path = file(stdout);
  const script =
    'import csv,json,sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1],newline=""),strict=True))))';
  const rows = JSON.parse(execFileSync('python3', ['-c', script, path], { encoding: 'utf8' }));
  assert.equal(rows.length, 3);
  const { id, hash, ...rest } = rows[2];
  assert.match(`${id} ${hash}`, /^\d+ [0-9a-f]{64}$/);
  assert.deepEqual(rest, {
    at: '2026-01-01T00:00:02Z',
    actor: 'api-key:1:=cmd()',
    action: 'certificate.download',
    resource: 'certificate:"a,b"\n',
    detail: '{"n":2}',
    ip: '192.0.2.1',
    request_id: 'r-2',
  });
});

test('export to a slow reader stays under 180 MB of memory', needs('pgrep'), async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await fill(data, 60_000);
  const peak = join(dirname(data), 'peak');
  const script = `"$0" audit export --data-dir "$1" | (sleep 1
    grep VmHWM /proc/$(pgrep -n -f "^$0 audit export --data-dir $1$")/status > "$2"; wc -l)`;
  const lines = execFileSync('/bin/sh', ['-c', script, fromExecutable[0], data, peak], { encoding: 'utf8' });
  assert(Number(lines) > 60_000, lines);
  const kilobytes = Number(/(\d+) kB/.exec(readFileSync(peak, 'utf8'))?.[1]);
  assert(kilobytes > 0 && kilobytes < 180_000, `${kilobytes} kB`);
});

test('export succeeds when the reader closes the pipe early', needs('bash'), async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await fill(data, 5000);
  const script = 'set -o pipefail; "$0" audit export --data-dir "$1" | head -n 1';
  const first = execFileSync('bash', ['-c', script, fromExecutable[0], data], { encoding: 'utf8' });
  assert.match(first, /^\{"id":1,/);
});
