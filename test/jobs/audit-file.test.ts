/** Audit events in a file: whole lines, after a rename and after a crash in the middle of one too. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AuditEventRow } from '../../src/db/audit/audit-events.ts';
import { auditFile } from '../../src/jobs/audit-file.ts';
import { tempDir } from '../harness/temp-dir.ts';

const going = new AbortController().signal;

const event = (id: number): AuditEventRow => ({
  ...{ id, at: Date.parse('2026-11-21T12:00:00Z'), actor: 'api-key:1:web', action: 'certificate.download' },
  ...{ resource: 'certificate:www', detail: '{"version":1}', ip: '192.0.2.1', request_id: 'r-1' },
  link: Buffer.alloc(32, id),
});

const idsIn = (path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: number }).id);

test('each event is one line of JSON in a file with mode 0600', async (t) => {
  const path = join(tempDir(t), 'audit.jsonl');
  const sink = auditFile(path);
  t.after(() => sink.close());
  await sink.deliver([event(1), event(2)], going);
  await sink.deliver([event(3)], going);
  assert.deepEqual(idsIn(path), [1, 2, 3]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(
    readFileSync(path, 'utf8').split('\n')[0],
    '{"id":1,"at":"2026-11-21T12:00:00Z","actor":"api-key:1:web","action":"certificate.download","resource":"certificate:www",' +
      `"detail":{"version":1},"ip":"192.0.2.1","request_id":"r-1","hash":"${'01'.repeat(32)}"}`,
  );
});

test('a file that was renamed, removed or emptied continues under its name', async (t) => {
  const path = join(tempDir(t), 'audit.jsonl');
  const sink = auditFile(path);
  t.after(() => sink.close());
  await sink.deliver([event(1)], going);
  renameSync(path, `${path}.1`);
  await sink.deliver([event(2)], going);
  rmSync(path);
  await sink.deliver([event(3)], going);
  assert.deepEqual([idsIn(`${path}.1`), idsIn(path)], [[1], [3]]);
  truncateSync(path);
  await sink.deliver([event(4)], going);
  assert.deepEqual(idsIn(path), [4]);
});

test('delivery is rejected while other users can write to the directory of the file', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'audit.jsonl');
  const other = join(tempDir(t), 'another-file');
  writeFileSync(other, '');
  const sink = auditFile(path);
  t.after(() => sink.close());
  chmodSync(directory, 0o777);
  symlinkSync(other, path);
  await assert.rejects(sink.deliver([event(1)], going), {
    message: `the audit file ${path} can be changed by other users: the directory ${directory} is writable by other users (mode 0777)`,
    hint: /^Fix: chmod go-w /,
  });
  assert.equal(readFileSync(other, 'utf8'), '');
  rmSync(path);
  chmodSync(directory, 0o770);
  await sink.deliver([event(1)], going);
  assert.deepEqual(idsIn(path), [1]);
});

test('the directory of a new file is synced before the delivery resolves', async (t) => {
  const directory = tempDir(t);
  const synced: string[] = [];
  await using handle = await open(directory);
  const handles: FileHandle = Object.getPrototypeOf(handle);
  const { sync } = handles;
  t.mock.method(handles, 'sync', function (this: FileHandle) {
    synced.push(readlinkSync(`/proc/self/fd/${this.fd}`));
    return sync.call(this);
  });
  const sink = auditFile(join(directory, 'audit.jsonl'));
  t.after(() => sink.close());
  await sink.deliver([event(1)], going);
  assert.deepEqual(synced, [directory]);
  await sink.deliver([event(2)], going);
  assert.deepEqual(synced, [directory]);
});

test('a file that fails after it was opened is closed, and the next delivery writes it', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'audit.jsonl');
  await using handle = await open(directory);
  const handles: FileHandle = Object.getPrototypeOf(handle);
  const fails = t.mock.method(handles, 'stat', () => Promise.reject(new Error('input/output error')));
  const isOpen = () =>
    readdirSync('/proc/self/fd').some((fd) => {
      const to = lstatSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false });
      return to !== undefined && readlinkSync(`/proc/self/fd/${fd}`) === path;
    });
  const sink = auditFile(path);
  t.after(() => sink.close());
  await assert.rejects(sink.deliver([event(1)], going), /input\/output error/);
  // Node ends a process that drops an open file.
  assert.equal(isOpen(), false);
  fails.mock.restore();
  await sink.deliver([event(1)], going);
  assert.match(readFileSync(path, 'utf8'), /^\{"id":1,.*\}\n$/);
});

test('a line that a crash has cut off does not spoil the next one', async (t) => {
  const path = join(tempDir(t), 'audit.jsonl');
  writeFileSync(path, '{"id":1}\n{"id":');
  const sink = auditFile(path);
  t.after(() => sink.close());
  await sink.deliver([event(2)], going);
  assert.match(readFileSync(path, 'utf8'), /^\{"id":1\}\n\{"id":\n\{"id":2,.*\}\n$/);
});

test('delivery is rejected while the directory is missing and works once it exists', async (t) => {
  const directory = join(tempDir(t), 'logs');
  const path = join(directory, 'audit.jsonl');
  const sink = auditFile(path);
  t.after(() => sink.close());
  await assert.rejects(sink.deliver([event(1)], going), { code: 'ENOENT' });
  mkdirSync(directory);
  await sink.deliver([event(1)], going);
  assert.deepEqual(idsIn(path), [1]);
  rmSync(directory, { recursive: true });
  await assert.rejects(sink.deliver([event(2)], going), { code: 'ENOENT' });
  assert.equal(existsSync(path), false);
  mkdirSync(directory);
  chmodSync(directory, 0o700);
  await sink.deliver([event(2)], going);
  assert.deepEqual(idsIn(path), [2]);
});
