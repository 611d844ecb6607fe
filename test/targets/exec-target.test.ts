/** The target `exec` with real programs: what they get, and what becomes of their failures. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { execTarget } from '../../src/targets/exec-target.ts';
import { hookScript } from '../harness/dns/hook-script.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import { materials, refusal } from '../harness/targets/target-scenarios.ts';
import { tempDir } from '../harness/temp-dir.ts';

const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard };
const { signal } = new AbortController();
const environment = { API_TOKEN: 'hunter2-4711' };

/** A target that runs this script, and what it wrote to `result.json`. */
function program(t: TestContext, body: string, settings: object = {}) {
  const dir = tempDir(t);
  const [node, script] = hookScript(dir, body);
  const config = execTarget.config.parse({
    command: [node, script, 'a b', '$HOME'],
    environment,
    timeout: 30,
    ...settings,
  });
  const target = execTarget.create(config, context);
  const result = () => JSON.parse(readFileSync(join(dir, 'result.json'), 'utf8'));
  return { target, result, dir };
}

suite('a program as deploy target', () => {
  test('gets the private key and the chain on standard input, and the facts in its environment', async (t) => {
    const { first } = await materials();
    const { target, result } = program(
      t,
      `const { readFileSync, writeFileSync } = require('node:fs');
       const input = readFileSync(0, 'utf8');
       const own = Object.entries(process.env).filter(([name]) => /^(VAULT|API)_/.test(name));
       const result = { input, args: process.argv.slice(2), own: Object.fromEntries(own) };
       writeFileSync(__dirname + '/result.json', JSON.stringify(result));`,
      { environment: { ...environment, VAULT_CERTIFICATE: 'a name that a setting cannot change' } },
    );
    assert.deepEqual(await target.install(first, null, signal), {});
    assert.deepEqual(result(), {
      input: first.privateKey.expose() + first.fullchain,
      args: ['a b', '$HOME'],
      own: {
        API_TOKEN: 'hunter2-4711',
        VAULT_CERTIFICATE: 'web',
        VAULT_CERTIFICATE_VERSION: '1',
        VAULT_CERTIFICATE_DOMAINS: first.domains.join(' '),
        VAULT_CERTIFICATE_FINGERPRINT: first.fingerprint,
        VAULT_CERTIFICATE_NOT_AFTER: first.notAfter,
      },
    });
  });

  test('has the private key neither in its arguments nor in its environment', async (t) => {
    const { first } = await materials();
    const { target, result } = program(
      t,
      `require('node:fs').writeFileSync(__dirname + '/result.json', JSON.stringify([process.argv, process.env]));`,
    );
    await target.install(first, null, signal);
    const [, line = ''] = first.privateKey.expose().split('\n');
    assert(!JSON.stringify(result()).includes(line));
  });

  test('counts as successful if it exits without reading its input', async (t) => {
    const { target } = program(t, '');
    assert.deepEqual(await target.install((await materials()).first, null, signal), {});
  });

  test('is reported as failed with its exit code and last output, in which secrets are hidden', async (t) => {
    const { first } = await materials();
    const { target, dir } = program(
      t,
      `const input = require('node:fs').readFileSync(0, 'utf8');
       console.log('not this');
       console.error('no route for', process.env.API_TOKEN, input.split('\\n')[1], 'at all');
       process.exitCode = 3;`,
    );
    const { message } = await refusal(target.install(first, null, signal));
    const [, line = ''] = first.privateKey.expose().split('\n');
    assert.match(message, / failed with exit code 3: no route for \[secret\] \[secret\] at all$/);
    assert(!message.includes(line.slice(0, 16)) && !message.includes('hunter2'), `${dir}: ${message}`);
  });

  test('is reported without a part of the private key if it prints all of its input', async (t) => {
    const { first } = await materials();
    const { target } = program(t, `process.stdin.pipe(process.stderr); process.exitCode = 1;`);
    const { message } = await refusal(target.install(first, null, signal));
    const key = first.privateKey.expose().split('\n').slice(1, -2).join('');
    for (let at = 0; at + 16 <= key.length; at += 1)
      assert(!message.includes(key.slice(at, at + 16)), message);
  });

  test('is killed if it does not exit within its timeout', async (t) => {
    const { target } = program(t, 'setInterval(() => {}, 1000);', { timeout: 1 });
    const { message } = await refusal(target.install((await materials()).first, null, signal));
    assert.match(message, / was killed after 1 s \(timeout\)/);
  });

  test('is killed if the installation is canceled', async (t) => {
    const { target } = program(t, 'setInterval(() => {}, 1000);');
    const { message } = await refusal(target.install((await materials()).first, null, AbortSignal.abort()));
    assert.match(message, / was killed because the attempt was canceled/);
  });

  test('is reported with its path if it does not exist', async (t) => {
    const missing = join(tempDir(t), 'missing');
    const config = execTarget.config.parse({ command: [missing] });
    const { message } = await refusal(
      execTarget.create(config, context).install((await materials()).first, null, signal),
    );
    assert(message.startsWith(`failed to start ${missing}: no such file`), message);
  });
});

test('the time limit of an installation is the timeout of the program', () => {
  const config = execTarget.config.parse({ command: ['/bin/true'], timeout: 90 });
  assert.equal(execTarget.patience(config), 90_000);
  assert.equal(execTarget.host(config), 'this machine');
  assert.equal(execTarget.destination(config, 'web'), '/bin/true');
});

const refused: readonly [settings: object, message: RegExp][] = [
  [{}, /^is missing; it must be a list of a program and its arguments$/],
  [{ command: [] }, /^must be a list of a program and its arguments$/],
  [{ command: ['install-certificate'] }, /^must begin with an absolute path \(PATH is not searched\)$/],
  [{ command: ['./install'] }, /^must begin with an absolute path \(PATH is not searched\)$/],
  [{ command: ['/bin/true', 'a\0b'] }, /^must not contain a NUL character$/],
  [{ command: ['/bin/true'], environment: { 'A=B': 'c' } }, /Invalid key|Invalid string/],
  [{ command: ['/bin/true'], timeout: 0 }, />=1/],
  [{ command: ['/bin/true'], timeout: 601 }, /<=600/],
  [{ command: ['/bin/true'], shell: true }, /shell/],
];
for (const [settings, message] of refused) {
  test(`a program with the settings ${JSON.stringify(settings)} is rejected`, () => {
    assert.match(execTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
