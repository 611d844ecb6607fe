/** `vault audit list` and its like at the command line: what people read, what programs read, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';

test('list prints the newest events first and filters by actor, action, resource and time', async (t) => {
  const { done, json, run } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await done('certificate', 'create', '--name=api', '--domain=b.test');
  const { stdout } = await done('audit', 'list', '--certificate', 'web');
  const [header, ...lines] = stdout.trimEnd().split('\n');
  assert.match(header ?? '', /^ID +AT +ACTOR +ACTION +RESOURCE +ADDRESS +DETAIL$/);
  assert.match(lines.at(-1) ?? '', /^\d+ +20\S+Z +local-cli +certificate\.create +certificate:web +- +\{"/);
  const actions = async (...options: string[]) =>
    (await json<{ action: string }[]>('audit', 'list', ...options)).map(({ action }) => action);
  const all = await actions();
  assert.deepEqual(await actions('--limit', '1'), all.slice(0, 1));
  assert.deepEqual(await actions('--action', 'certificate.create'), [
    'certificate.create',
    'certificate.create',
  ]);
  assert.deepEqual(await actions('--resource', 'certificate:api'), await actions('--certificate=api'));
  assert.deepEqual(await actions('--since', '1h'), all);
  assert.deepEqual(await actions('--until', '2020-01-01T00:00:00Z'), []);
  assert.deepEqual(await actions('--since', '2020-01-01'), all);
  assert.deepEqual(await actions('--until', '2020-01-01'), []);
  assert.deepEqual(await actions('--until', '1d'), []);
  assert.deepEqual(await run('audit', 'list', '--actor', 'admin:nobody'), {
    ...{ code: 0, stdout: '', stderr: 'No matching events.\n' },
  });
  const [event] = await json<object[]>('audit', 'list', '--limit', '1');
  assert.deepEqual(Object.keys(event ?? {}).toSorted(), [
    ...['action', 'actor', 'at', 'detail', 'id', 'ip', 'request_id', 'resource'],
  ]);
});

test('invalid times, limits and formats and mutually exclusive options are rejected', async (t) => {
  const { done, refused } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  for (const [words, complaint] of [
    [
      ['list', '--since', 'yesterday'],
      /^vault: --since: "yesterday" is not a time\n {2}Use 90d, 2030-01-31 \(from 00:00 UTC\) or 2030-01-31T00:00:00Z\.\n$/,
    ],
    [['export', '--until', '2026-02-30T00:00:00Z'], /^vault: --until: .* is not a time/],
    [['list', '--limit', '0'], /^vault: --limit: "0" is not a number from 1 to 1000/],
    [
      ['list', '--certificate', 'a', '--resource', 'b'],
      /^vault: --certificate and --resource exclude each other/,
    ],
    [
      ['export', '--format', 'xlsx'],
      /^vault: --format: unknown format "xlsx"\n {2}Use one of csv, jsonl\.\n/,
    ],
  ] as const) {
    await refused(['audit', ...words], complaint, 2);
  }
});
