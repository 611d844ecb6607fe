/** The log of a server: JSON lines on stderr that a request can be found in, as loud as asked for, without secrets. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Line = { readonly [field: string]: unknown; readonly level: string; readonly msg: string };

/** What of stderr is log; how to become the first administrator is for the person who starts the server. */
function logOf(server: RunningVault): string {
  return server.log().replace(/^No administrator yet\..*\n {2}vault admin setup-link .*\n/m, '');
}

function linesOf(log: string): Line[] {
  assert.ok(log === '' || log.endsWith('\n'), log);
  return log
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

test('each log line is JSON with level, time and message, and each request is logged with its request ID', async (t) => {
  const dir = tempDir(t);
  const options = ['--name=watched', '--scope=certificates:read', '--certificate=*'];
  const raw = (await vault(['api-key', 'create', '--data-dir', dir, ...options])).stdout.trim();
  const server = await serve(t, dir);
  const headers = { Authorization: `Bearer ${raw}` };
  const answers = await Promise.all([
    fetch(`${server.url}/api/v1/certificates`, { headers }),
    fetch(`${server.url}/api/v1/certificates/none`, { headers }),
    fetch(`${server.url}/nowhere?token=${raw}`),
  ]);
  await server.end();
  const lines = linesOf(logOf(server));
  for (const { level, msg, time } of lines) {
    assert.match(level, /^(info|warn|error)$/);
    assert.equal(typeof msg, 'string');
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  const requests = answers.map(({ headers }) => {
    const id = headers.get('x-request-id');
    const found = lines.filter((line) => line.request_id === id);
    assert.equal(found.length, 1, `request ${id}`);
    return found[0];
  });
  assert.deepEqual(
    requests.map((line) => line?.status),
    [200, 404, 404],
  );
  assert.match(String(requests[0]?.actor), /^api-key:\d+:watched$/);
  // A job logs the end of the audit log, before or after the listeners.
  const others = lines.filter(({ msg }) => msg !== 'request' && msg !== 'end of the audit log');
  assert.deepEqual(
    others.map(({ msg }) => msg),
    ['listening', 'stopping', 'stopped'],
  );
  assert.ok(!server.log().includes(raw.split('.')[1] ?? raw), 'a raw key is in the log');
});

test('--log-level warn and silent suppress less severe log lines', async (t) => {
  const dir = tempDir(t);
  for (const level of ['warn', 'silent']) {
    const server = await serve(t, dir, { args: ['--log-level', level] });
    await fetch(`${server.url}/api/v1/health`);
    await server.end();
    assert.equal(logOf(server), '', level);
  }
});

test('an error is logged with its hint and its causes, and a secret as [secret]', async () => {
  const script = `
    const { openLog } = await import('./src/cli/runtime/log-output.ts');
    const { OperatorError } = await import('./src/base/operator-error.ts');
    const { Secret } = await import('./src/base/secret.ts');
    const { realWorld: world } = await import('./src/base/world.ts');
    const log = openLog('debug', { forPerson: false, world });
    const cause = new Error('no space');
    const err = new OperatorError('cannot write', { hint: 'Make room.', cause });
    log.error({ err, key: new Secret('hunter2'), bytes: new Secret(Buffer.from('hunter2')) }, 'it failed');
    log.warn({ err: 'a text' }, 'odd');
    log.debug({}, 'fine');
    process.exit();`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const args = ['--input-type=module', '--eval', script];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd });
  const [failed, odd, fine] = linesOf(stderr);
  const err = failed?.err as Record<string, unknown>;
  assert.deepEqual([err.type, err.message, err.hint], ['OperatorError', 'cannot write', 'Make room.']);
  assert.match(String(err.stack), /^OperatorError: cannot write\n +at /);
  assert.equal((err.cause as Record<string, unknown>).message, 'no space');
  assert.deepEqual(
    [failed?.level, failed?.msg, failed?.key, failed?.bytes],
    ['error', 'it failed', '[secret]', '[secret]'],
  );
  assert.deepEqual([odd?.level, odd?.err, fine?.level], ['warn', 'a text', 'debug']);
  assert.ok(!stderr.includes('hunter2'));
});

test('errors at level info have no stack: a bug has its location, an operator error its hint', async () => {
  const script = `
    const { openLog } = await import('./src/cli/runtime/log-output.ts');
    const { OperatorError } = await import('./src/base/operator-error.ts');
    const { realWorld: world } = await import('./src/base/world.ts');
    const log = openLog('info', { forPerson: false, world });
    function broken() { return new TypeError('no function'); }
    log.with({ part: 1 }).error({ err: broken() }, 'a bug');
    log.error({ err: new OperatorError('cannot write', { hint: 'Make room.', cause: broken() }) }, 'a refusal');
    log.debug({}, 'unheard');
    log.setLevel('debug');
    log.with({}).debug({ err: broken() }, 'heard');
    process.exit();`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const args = ['--input-type=module', '--eval', script];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd });
  const [bug, refusal, heard, ...more] = linesOf(stderr).map(({ err }) => err as Record<string, unknown>);
  assert.deepEqual(more, []);
  assert.deepEqual([bug?.message, bug?.stack], ['no function', undefined]);
  assert.match(String(bug?.at), /^broken \(/);
  const { at, stack, hint, cause } = refusal ?? {};
  assert.deepEqual([at, stack, hint], [undefined, undefined, 'Make room.']);
  assert.equal((cause as Record<string, unknown>).stack, undefined);
  assert.match(String(heard?.stack), /^TypeError: no function\n +at broken /);
});

test('JSON log lines escape control characters', async () => {
  const script = `
    const { openLog } = await import('./src/cli/runtime/log-output.ts');
    const { realWorld: world } = await import('./src/base/world.ts');
    const log = openLog('info', { forPerson: false, world });
    log.info({ name: '\\u001b[2J\\u009b2J\\u202e\\u2028\\u007f' }, 'from outside');
    process.exit();`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const args = ['--input-type=module', '--eval', script];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd });
  assert.match(stderr, /^[ -~]+\n$/);
  assert.equal(linesOf(stderr)[0]?.name, '\u001b[2J\u009b2J\u202e\u2028\u007f');
});

test('on a terminal people get readable lines, and ^C stops the server', needs('script'), async (t) => {
  const command = [
    ...fromExecutable,
    'serve',
    '--data-dir',
    join(tempDir(t), 'data'),
    '--listen',
    '127.0.0.1:0',
  ];
  // Without exec a shell may stay above the vault, get the ^C as well, and end with a code of its own.
  const line = `exec ${command.join(' ')}`;
  const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null']);
  t.after(() => child.kill('SIGKILL'));
  let seen = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const wasListening = seen.includes('listening on');
    seen += chunk;
    if (!wasListening && seen.includes('listening on')) child.stdin.write('\u0003');
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0, seen);
  const log = stripVTControlCharacters(seen)
    .split('\r\n')
    .filter((line) => line.startsWith('20'));
  for (const line of log) assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (info |warn |error) [a-z]/);
  assert.match(log.join('\n'), /Z info {2}listening url=http:\/\/127\.0\.0\.1:\d+ version=\S+\n/);
  assert.match(log.at(-1) ?? '', /Z info {2}stopped$/);
  assert.match(
    seen,
    /To create one, open this link .*\r\n {2}http:\/\/127\.0\.0\.1:\d+\/setup#token=[\w-]{43}\r\n/,
  );
  assert.doesNotMatch(seen, /[{}]/);
});
