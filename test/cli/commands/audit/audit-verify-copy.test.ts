/**
 * `vault audit verify --file`: exports and audit files verify without the vault, and what was changed in them shows.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';

type Event = Record<string, unknown> & { readonly id: number };

/** A vault with some events, its whole log exported, a checkpoint and the key by which that is checked. */
async function exported(t: Parameters<typeof commandLine>[0]) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  await line.done('api-key', 'create', '--name=wéb "1"', '--scope=certificates:read', '--certificate=web');
  const text = (await line.done('audit', 'checkpoint')).stdout;
  const checkpoint = line.file(text, 'checkpoint.txt');
  const key = line.file((await line.done('audit', 'public-key')).stdout, 'key.pem');
  await line.done('api-key', 'revoke', '--id=1');
  const lines = (await line.done('audit', 'export')).stdout.trimEnd().split('\n');
  const copy = (some: readonly string[]) => line.file(`${some.join('\n')}\n`, 'copy.jsonl');
  return { ...line, lines, copy, checkpoint, key };
}

test('an export verifies, with and without a checkpoint, on a machine that has no vault', async (t) => {
  const { run, json, data, lines, copy, checkpoint, key } = await exported(t);
  const path = copy(lines);
  rmSync(data, { recursive: true });
  const { code, stdout, stderr } = await run(
    ...['audit', 'verify', '--file', path, '--checkpoint', checkpoint, '--public-key', key],
  );
  const count = lines.length;
  const { hash } = JSON.parse(lines.at(-1) ?? '') as Event;
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(
    stdout.replace(path, 'FILE'),
    new RegExp(
      `^FILE is intact: ${count} events, from 1 to ${count}\\.\nMatches the checkpoint of event \\d, \\S+Z\\.\nLast hash: ${hash}\n$`,
    ),
  );
  const report = await json<Record<string, unknown>>('audit', 'verify', '--file', path);
  assert.deepEqual(
    [report.whole, report.events, report.unproved_id, report.repeated_events, report.other_lines],
    [true, count, null, 0, 0],
  );
  assert.equal(existsSync(data), false);
});

test('an event that was modified, removed, inserted, moved or rewritten is found', async (t) => {
  const { run, lines, copy } = await exported(t);
  const [first = '', second = '', third = '', ...rest] = lines;
  const forged = second.replace('"actor":"local-cli"', '"actor":"admin:eve"');
  const eve = '"actor":"admin:eve","actor":"';
  for (const [some, expected] of [
    [
      [first, forged, third, ...rest],
      /^FAULT: event 2 was modified, or does not follow the previous event\n/,
    ],
    [[first, third, ...rest], /^FAULT: event 2 is missing before event 3\n/],
    [
      [first, second, third, forged, ...rest],
      /^FAULT: event 2 comes after event 3, and is not a repetition\n/,
    ],
    [
      [first, third, second, ...rest],
      /^FAULT: event 2 is missing before event 3\nFAULT: event 2 comes after/,
    ],
    [
      [first, second.replace('"actor":"', eve), third, ...rest],
      /^FAULT: event 2 is missing before event 3\n/,
    ],
    [[first, second.replace('"id":2', '"id":2.0'), third, ...rest], /^FAULT: event 2 is missing before/],
  ] as const) {
    assert.notDeepEqual(some, lines);
    const { code, stdout, stderr } = await run('audit', 'verify', '--file', copy(some));
    assert.equal(code, 1);
    assert.match(stdout, expected);
    assert.match(stderr, /^vault: \S+copy\.jsonl failed verification\n {2}A filtered export has gaps/);
  }
});

test('repeated events and partial lines after a crash are reported but are not faults', async (t) => {
  const { done, lines, copy } = await exported(t);
  const [first = '', second = '', ...rest] = lines;
  const path = copy([first, second, '{"id":3,"at', first, second, ...rest]);
  const { stdout } = await done('audit', 'verify', '--file', path);
  assert.match(stdout, /is intact: \d+ events, from 1 to/);
  assert.match(stdout, /\nRepeated events: 2\nLines that are not events: 1\n$/);
});

test('the first event of a partial copy is unverified unless a checkpoint covers the previous event', async (t) => {
  const { done, run, lines, copy, checkpoint, key } = await exported(t);
  const id = Number(/^event (\d+)$/m.exec(readFileSync(checkpoint, 'utf8'))?.[1]);
  const later = lines.slice(id);
  const { stdout } = await done('audit', 'verify', '--file', copy(later));
  assert.match(stdout, new RegExp(`\nEvent ${id + 1} could not be verified: `));
  const proved = ['--checkpoint', checkpoint, '--public-key', key];
  const whole = await done('audit', 'verify', '--file', copy(later), ...proved);
  assert.doesNotMatch(whole.stdout, /could not be verified/);
  const [first = '', ...rest] = later;
  const forged = copy([first.replace('"actor":"local-cli"', '"actor":"admin:eve"'), ...rest]);
  const { code, stdout: found } = await run('audit', 'verify', '--file', forged, ...proved);
  assert.equal(code, 1);
  assert.match(found, new RegExp(`^FAULT: event ${id + 1} was modified`));
  const cut = await run('audit', 'verify', '--file', copy(lines.slice(0, id - 1)), ...proved);
  assert.match(cut.stdout, new RegExp(`^FAULT: the log ends at event ${id - 1}, before the checkpoint`));
});

test('verify --file rejects files without events, unreadable files and conflicting options', async (t) => {
  const { done, refused, file, checkpoint, key, data } = await exported(t);
  const csv = file((await done('audit', 'export', '--format', 'csv')).stdout, 'audit.csv');
  await refused(['audit', 'verify', '--file', csv], /holds no audit events\n.*CSV cannot be verified\.\n$/);
  await refused(['audit', 'verify', '--file', file('')], /holds no audit events\n/);
  await refused(['audit', 'verify', '--file', `${csv}.gone`], /cannot read .*audit\.csv\.gone: no such file/);
  await refused(['audit', 'verify', '--file', data], /^vault: cannot read .*: is a directory/);
  await refused(['audit', 'verify', '--public-key', key], /^vault: --public-key needs --file/, 2);
  await refused(
    ['audit', 'verify', '--file', '-', '--checkpoint', '-'],
    /^vault: only one option can read standard input/,
    2,
  );
  const other = ['--checkpoint', checkpoint, '--public-key', checkpoint];
  await refused(
    ['audit', 'verify', '--file', csv, ...other],
    /checkpoint\.txt is not a checkpoint public key/,
  );
});
