/**
 * What a running server still asks the file system for while everyone waits. lint/waiting.grit cannot know who calls
 * whom.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../harness/eventually.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { fromSource, serve } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** Source files whose calls are short, or rare, or wait for what the database waits for too. */
const excepted: Readonly<Record<string, string>> = {
  'cli/runtime/log-output.ts': 'what is left of the log goes out at the end',
  'db/sqlite/file-in-place.ts': 'beside the database, which is read on the same thread',
  'db/sqlite/process-lock.ts': 'beside the database, through SQLite',
  'http/metrics/process-metrics.ts': 'prom-client reads /proc',
  'net/own-program.ts': '/proc',
};

/** From SIGUSR2 on, writes down which of our files call a function of node:fs that ends in Sync. */
function recorder(begun: string, report: string): string {
  const source = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const { writeFileSync } = fs;
    let calls;
    for (const name of Object.keys(fs).filter((name) => name.endsWith('Sync'))) {
      const real = fs[name];
      fs[name] = (...args) => {
        const [, caller] = /\\/src\\/(\\S+?\\.ts):/.exec(calls && new Error().stack) ?? [];
        if (caller !== undefined) calls.set(caller, name);
        return real(...args);
      };
    }
    syncBuiltinESMExports();
    process.once('SIGUSR2', () => {
      writeFileSync(${JSON.stringify(begun)}, '');
      calls = new Map();
    });
    process.once('exit', () => calls && writeFileSync(${JSON.stringify(report)}, JSON.stringify([...calls])));`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

test('a running server makes no synchronous file system calls outside the excepted files', async (t) => {
  const line = commandLine(t);
  const dir = tempDir(t);
  const [node, main] = fromSource;
  const [begun, report, backups] = ['begun', 'report', 'backups'].map((name) => join(dir, name));
  assert(begun && report && backups);
  mkdirSync(backups, { mode: 0o700 });
  mkdirSync(line.data, { mode: 0o700 });
  writeFileSync(
    join(line.data, 'vault.yaml'),
    `audit_file: ${join(dir, 'audit.log')}\nbackup_dir: ${backups}\nmetrics_listen: 127.0.0.1:0\n`,
    { mode: 0o600 },
  );
  const server = await serve(t, line.data, {
    program: [node, '--import', recorder(begun, report), main],
  });
  process.kill(server.pid, 'SIGUSR2');
  await eventually('the recorder', () => existsSync(begun));

  await line.done('certificate', 'create', '--name=web', '--domain=web.test');
  const rights = ['--scope=certificates:read', '--certificate=web'];
  const { stdout: key } = await line.done('api-key', 'create', '--name=a', ...rights);
  const get = async (path: string, token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${server.url}${path}`, { headers })).status;
  };
  const artifact = '/api/v1/certificates/web/fullchain.pem';
  assert.equal(await get(artifact, key.trim()), 200);
  assert.equal(await get(artifact, 'wrong'), 401);
  for (const path of ['/api/v1/ready', '/', '/client/install.sh'])
    assert.equal(await get(path, ''), 200, path);
  const metrics = /"url":"(http[^"]+\/metrics)"/.exec(server.log())?.[1];
  assert.equal((await fetch(`${metrics}`)).status, 200);
  await line.done('certificate', 'renew', '--name=web', '--wait');
  await line.done('master-key', 'rotate');
  process.kill(server.pid, 'SIGHUP');
  await eventually('the reload', () => server.log().includes('"settings reloaded"'));
  await eventually('a copied event', () =>
    readFileSync(join(dir, 'audit.log'), 'utf8').includes('api_key.create'),
  );
  assert.deepEqual(await server.end(), { code: 0, signal: null });

  const calls = JSON.parse(readFileSync(report, 'utf8')) as [string, string][];
  assert.ok(
    calls.some(([file]) => file === 'db/sqlite/process-lock.ts'),
    'the recorder records',
  );
  assert.deepEqual(
    calls.filter(([file]) => excepted[file] === undefined),
    [],
  );
});
