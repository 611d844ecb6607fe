/**
 * Control characters that a caller puts into the path of a request: no form of the audit log passes them to a terminal.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../harness/eventually.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

const evil = '\u009b31m\u009d0;owned\u009c\u202e\u2028\u0007\r\n=1+1';
const acting = /(?![\n\r])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

test('control characters in a rejected path are escaped in lists, exports and the audit file, which verify', async (t) => {
  const { data, done, json, file } = commandLine(t);
  const raw = (
    await done('api-key', 'create', '--name=low', '--scope=renewals:trigger', '--certificate=*')
  ).stdout.trim();
  const auditFile = join(dirname(data), 'audit.jsonl');
  const server = await serve(t, data, { args: ['--audit-file', auditFile] });
  const url = `${server.url}/api/v1/certificates/${encodeURIComponent(evil)}/private.key`;
  const response = await fetch(url, { headers: { Authorization: `Bearer ${raw}` } });
  assert.equal(response.status, 403);
  const lines = await eventually('the refusal is in the audit file', () => {
    const written = existsSync(auditFile) ? readFileSync(auditFile, 'utf8') : '';
    return written.includes('"access.refuse"') ? written : undefined;
  });
  await server.end();
  const [event] = await json<{ id: number }[]>('audit', 'list', '--action=access.refuse');
  assert.ok(JSON.stringify(event).includes('\u009b31m'), 'the path is recorded as it is');
  const exported = (await done('audit', 'export')).stdout;
  const printed = {
    'audit file': lines,
    'audit export': exported,
    log: server.log(),
    ...Object.fromEntries(
      await Promise.all(
        [['list'], ['list', '--json'], ['tail'], ['tail', '--json'], ['export', '--format=csv']].map(
          async (args) => [args.join(' '), (await done('audit', ...args)).stdout],
        ),
      ),
    ),
  } as Record<string, string>;
  for (const [name, text] of Object.entries(printed)) assert.doesNotMatch(text, acting, name);
  for (const name of ['audit file', 'audit export', 'tail --json', 'export --format=csv'])
    assert.match(printed[name] ?? '', /\\u009b31m/, name);
  for (const text of [exported, lines]) await done('audit', 'verify', '--file', file(text));

  // Earlier versions wrote these characters as they are; an audit file can have both forms of one event.
  const current = exported.trimEnd().split('\n');
  const old = current.map((line) => JSON.stringify(JSON.parse(line)));
  const last = current.findIndex((line) => line.includes('"access.refuse"'));
  assert.notEqual(old[last], current[last]);
  const both = [...old.slice(0, last + 1), ...current.slice(last, last + 1), ...old.slice(last)];
  const verified = await json<Record<string, unknown>>('audit', 'verify', '--file', file(both.join('\n')));
  assert.deepEqual(
    [verified.whole, verified.events, verified.repeated_events, verified.other_lines],
    [true, current.length, 2, 0],
  );
  const forged = old.map((line) => line.replace('\u202e', '')).join('\n');
  await assert.rejects(done('audit', 'verify', '--file', file(forged)), /failed verification/);
});
