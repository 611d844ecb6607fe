/** `vault audit tail`: the newest events in the order in which they happened, and the next ones as they happen. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { outside } from '../../../harness/database/outside-database.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { fromExecutable } from '../../../harness/processes/vault-process.ts';

test('tail prints the newest events, oldest first, as lines or as JSON', async (t) => {
  const { done, refused } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await done('api-key', 'create', '--name=k', '--scope=certificates:read', '--certificate=web');
  const { stdout } = await done('audit', 'tail', '--lines', '1');
  assert.match(stdout, /^20\S+Z {2}local-cli {2}api_key\.create {2}api-key:1 {2}\{".*\}\n$/);
  const all = (await done('audit', 'tail', '--json')).stdout.trimEnd().split('\n');
  assert.deepEqual(
    all.map((line) => (JSON.parse(line) as { id: number }).id),
    all.map((_, index) => index + 1),
  );
  assert.equal((await done('audit', 'tail', '--lines=0')).stdout, '');
  assert.equal((await done('audit', 'tail', '--action=backup.create')).stdout, '');
  await refused(['audit', 'tail', '--lines=-1'], /^vault: --lines: "-1" is not a number from 0 to 1000/, 2);
});

test('tail replaces control characters with question marks', async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  outside(data, (db) =>
    db.exec(
      "insert into audit_events (at, actor, action, resource, detail) values (1, 'a', 'b', char(27) || '[2J', '{}')",
    ),
  );
  assert.match((await done('audit', 'tail', '--lines=1')).stdout, /^1970\S+ {2}a {2}b {2}\?\[2J\n$/);
});

test('tail --follow prints new matching events until SIGINT', async (t) => {
  const { done, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const [program = ''] = fromExecutable;
  const words = ['audit', 'tail', '--follow', '--lines=0', '--action=certificate.create', '--json'];
  const child = spawn(program, [...words, '--data-dir', data], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let seen = '';
  const shown = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
      if (seen.includes('certificate:last')) resolve();
    });
  });
  // Whenever it has begun, the one after that is shown.
  let made = 0;
  const more = async () => {
    while (!seen.includes('certificate:more')) {
      await done('certificate', 'create', `--name=more${made++}`, '--domain=b.test');
    }
  };
  await more();
  await done('api-key', 'create', '--name=k', '--scope=certificates:read', '--certificate=web');
  await done('certificate', 'create', '--name=last', '--domain=c.test');
  await shown;
  const events = seen
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { action: string; resource: string });
  assert(events.every(({ action }) => action === 'certificate.create'));
  assert.equal(events.at(-1)?.resource, 'certificate:last');
  child.kill('SIGINT');
  assert.deepEqual(await once(child, 'close'), [0, null]);
});
