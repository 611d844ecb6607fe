/** Hook programs always terminate, with their child processes. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { realWorld } from '../../src/base/world.ts';
import { type HookRun, runHook } from '../../src/net/hook-process.ts';
import { hookScript, recordingHook } from '../harness/dns/hook-script.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const never = new AbortController().signal;
const runOf = ([program = '', ...args]: readonly string[], more: Partial<HookRun> = {}): HookRun => ({
  ...{ program, args, environment: {}, timeoutMs: 30_000 },
  ...more,
});

/** Until the file is there, with what is in it. */
async function contents(path: string): Promise<string> {
  while (!existsSync(path) || readFileSync(path, 'utf8') === '') await sleep(5);
  return readFileSync(path, 'utf8');
}

/** Until the process has ended. */
async function gone(pid: number): Promise<void> {
  while (isThere(pid) && !isZombie(pid)) await sleep(5);
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // ESRCH: it is not.
    return false;
  }
}

/** Ended, but init, which took it over, has not looked: in some containers it never does. */
function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    // There is no /proc here, or it has just gone.
    return false;
  }
}

test('a hook receives its arguments unchanged, and only PATH, HOME and its own environment', async (t) => {
  const hook = recordingHook(tempDir(t));
  process.env.VAULT_HOOK_TEST = 'not for hooks';
  t.after(() => delete process.env.VAULT_HOOK_TEST);
  const args = ['', 'a b', '$HOME', '`id`', '; rm -rf /', '"', "'", '\n', 'ü'];
  const environment = { TOKEN: 'for hooks', LANG: 'overridden' };
  const end = await runHook(realWorld, runOf([...hook.command, ...args], { environment }), never);
  assert.deepEqual(end, {
    ...{ started: true, exitCode: 0, killedBy: undefined, stopped: undefined, stdout: '', stderr: '' },
  });
  const [call] = hook.calls();
  assert.deepEqual(call?.args, args);
  const { PATH, HOME } = process.env;
  const expected = { ...(PATH && { PATH }), ...(HOME && { HOME }), ...environment };
  // The operating system may add its own (__CF_USER_TEXT_ENCODING on macOS).
  const env = Object.entries(call?.env ?? {}).filter(([name]) => !name.startsWith('__'));
  assert.deepEqual(Object.fromEntries(env), expected);
  assert.equal(call?.cwd, '/');
});

test('exit code, signal and both outputs are reported', async (t) => {
  const dir = tempDir(t);
  const failing = hookScript(dir, `console.log('out'); console.error('err'); process.exitCode = 3;`);
  const end = await runHook(realWorld, runOf(failing), never);
  assert.deepEqual(end, {
    ...{ started: true, exitCode: 3, killedBy: undefined, stopped: undefined },
    ...{ stdout: 'out\n', stderr: 'err\n' },
  });
  const killed = await runHook(
    realWorld,
    runOf(hookScript(dir, `process.kill(process.pid, 'SIGKILL');`)),
    never,
  );
  assert(killed.started);
  assert.equal(killed.exitCode, undefined);
  assert.equal(killed.killedBy, 'SIGKILL');
});

test('a hook with much output succeeds, and the last 4096 characters are kept', async (t) => {
  const body = `for (let i = 0; i < 3000; i += 1) console.error('line ' + i + 'x'.repeat(1000));`;
  const end = await runHook(realWorld, runOf(hookScript(tempDir(t), body)), never);
  assert(end.started);
  assert.equal(end.exitCode, 0);
  assert.equal(end.stderr.length, 4096);
  assert.match(end.stderr, /line 2999x+\n$/);
});

test('a script without a shebang line is run by sh with its arguments unchanged', async (t) => {
  const path = join(tempDir(t), 'hook');
  writeFileSync(path, `printf '%s|' "$@"`, { mode: 0o700 });
  const end = await runHook(realWorld, runOf([path, 'a b', '$HOME', '; id']), never);
  assert(end.started);
  assert.deepEqual([end.exitCode, end.stdout], [0, 'a b|$HOME|; id|']);
});

suite('a hook that cannot be started', () => {
  test('is reported as E2BIG if its arguments are too long', async (t) => {
    const hook = recordingHook(tempDir(t));
    const end = await runHook(realWorld, runOf([...hook.command, 'x'.repeat(5_000_000)]), never);
    assert.deepEqual(end, { started: false, code: 'E2BIG' });
  });

  test('is reported as ENOENT or EACCES if it is missing, not executable or has no interpreter', async (t) => {
    const dir = tempDir(t);
    const path = join(dir, 'hook');
    const start = () => runHook(realWorld, runOf([path]), never);
    assert.deepEqual(await start(), { started: false, code: 'ENOENT' });
    writeFileSync(path, '#!/there/is/no/such/interpreter\n');
    assert.deepEqual(await start(), { started: false, code: 'EACCES' });
    chmodSync(path, 0o700);
    assert.deepEqual(await start(), { started: false, code: 'ENOENT' });
  });
});

suite('termination', () => {
  test("the timeout kills the hook's process group", async (t) => {
    const dir = tempDir(t);
    const file = join(dir, 'pids');
    const body = `
      const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
      require('node:fs').writeFileSync(${JSON.stringify(file)}, process.pid + ' ' + child.pid);
      console.error('working');
      setInterval(() => {}, 1000);`;
    const world = new TestWorld();
    const running = runHook(world, runOf(hookScript(dir, body)), never);
    const pids = (await contents(file)).split(' ').map(Number);
    world.advance(30_000);
    const end = await running;
    assert(end.started);
    assert.equal(end.stopped, 'timeout');
    assert.equal(end.killedBy, 'SIGTERM');
    for (const pid of pids) await gone(pid);
  });

  test('a hook that ignores SIGTERM is killed two seconds later', async (t) => {
    const dir = tempDir(t);
    const file = join(dir, 'pid');
    const body = `
      process.on('SIGTERM', () => require('node:fs').writeFileSync(${JSON.stringify(`${file}.term`)}, 'heard'));
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid));
      setInterval(() => {}, 1000);`;
    const world = new TestWorld();
    const stop = new AbortController();
    const running = runHook(world, runOf(hookScript(dir, body)), stop.signal);
    const pid = Number(await contents(file));
    stop.abort();
    assert.equal(await contents(`${file}.term`), 'heard');
    assert(isThere(pid));
    world.advance(2000);
    const end = await running;
    assert(end.started);
    assert.deepEqual([end.stopped, end.killedBy], ['aborted', 'SIGKILL']);
  });

  test('a hook is stopped immediately if the signal was aborted before the start', async (t) => {
    const body = 'setInterval(() => {}, 1000);';
    const end = await runHook(realWorld, runOf(hookScript(tempDir(t), body)), AbortSignal.abort());
    assert(end.started);
    assert.deepEqual([end.stopped, end.killedBy], ['aborted', 'SIGTERM']);
  });

  test('a hook that leaves a daemon behind ends without waiting for it or killing it', async (t) => {
    const dir = tempDir(t);
    const file = join(dir, 'pid');
    const body = `
      const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'],
        { stdio: 'inherit' });
      child.unref();
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(child.pid));
      console.log('done');
      process.exit(0);`;
    const world = new TestWorld();
    const running = runHook(world, runOf(hookScript(dir, body)), never);
    const pid = Number(await contents(file));
    t.after(() => process.kill(pid, 'SIGKILL'));
    // The deadline's sleep, and the one for the output.
    await world.sleeping(2);
    world.advance(1000);
    const end = await running;
    assert(end.started);
    assert.deepEqual([end.exitCode, end.stdout], [0, 'done\n']);
    assert(isThere(pid));
  });
});
