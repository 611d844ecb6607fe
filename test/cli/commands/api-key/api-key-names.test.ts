/** Names that look like others, on the command line: each refusal says which character is wrong, and what to do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goodPassword } from '../../../harness/http/sign-in-fixtures.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';

const mixed = 'w\u0435b';
const hidden = 'web\u200b';

test('API key names with mixed scripts, invisible characters or a lookalike of another name are rejected', async (t) => {
  const { done, refused, json } = commandLine(t);
  const create = (name: string) => [
    ...['api-key', 'create', '--name', name],
    ...['--scope', 'certificates:read', '--certificate', '*'],
  ];
  await done(...create('web'));
  const script = 'a name must not mix U+0435 (Cyrillic) with Latin letters; write it in one script';
  const invisible = 'a name must not contain the invisible or unassigned character U+200B; remove it';
  await refused(create(mixed), `vault: ${script}\n`);
  await refused(create(hidden), `vault: ${invisible}\n`);
  await refused(create('ＷＥＢ'), /^vault: API key "web" already exists \(id 1\)\n/);
  await refused(['api-key', 'update', 'web', '--name', mixed], `vault: ${script}\n`);
  await done('api-key', 'update', 'web', '--name', 'Web');
  await done(...create('веб'));
  const keys = await json<{ name: string }[]>('api-key', 'list');
  assert.deepEqual(
    keys.map(({ name }) => name),
    ['Web', 'веб'],
  );
});

test('notification channel names that are not ASCII or differ only in case are rejected', async (t) => {
  const { done, refused } = commandLine(t);
  const add = (name: string) => [
    ...['notification', 'add', 'webhook', '--channel', name, '--url', 'https://hooks.a.test/x'],
    ...['--event', 'renewal.failed'],
  ];
  await done(...add('web'));
  await refused(add(mixed), /^vault: .*a name has up to 64 letters.*; replace or remove U\+0435\n/);
  await refused(add(hidden), /^vault: .*a name has up to 64 letters.*; replace or remove U\+200B\n/);
  await refused(add('Web'), /^vault: a notification channel named web already exists\n/);
});

test('administrator names that are not ASCII or differ only in case are rejected', async (t) => {
  const { run } = commandLine(t, { input: `${goodPassword}\n` });
  const create = (name: string) => run('admin', 'create', '--name', name, '--password-stdin');
  assert.equal((await create('web')).code, 0);
  for (const [name, stderr] of [
    [mixed, /^vault: a name has up to 64 letters.*; replace or remove U\+0435\n/],
    [hidden, /^vault: a name has up to 64 letters.*; replace or remove U\+200B\n/],
    ['Web', /^vault: Administrator "web" already exists\.\n/],
  ] as const) {
    const outcome = await create(name);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, stderr);
  }
});
