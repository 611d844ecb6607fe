/** Hooks in the three styles that people have scripts for, and what they learn when one fails. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { suite, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { realWorld, type World } from '../../../src/base/world.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { execHook } from '../../../src/dns/providers/exec-hook.ts';
import { fakeContext, JumpingWorld } from '../../harness/dns/fake-provider.ts';
import { hookScript, recordingHook } from '../../harness/dns/hook-script.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const never = new AbortController().signal;
const name = '_acme-challenge.www.example.test';
const record = { name, value: 'v-1', zone: 'example.test', domain: 'www.example.test' };

function providerFor(config: object, world: World = realWorld) {
  return execHook.create(execHook.config.parse(config), {
    ...fakeContext(),
    world,
    log: silentLog,
  });
}

async function bothCalls(t: TestContext, config: object) {
  const hook = recordingHook(tempDir(t));
  const provider = providerFor({ command: [...hook.command, 'own argument'], ...config });
  await provider.present(record, never);
  await provider.remove(record, never);
  return hook.calls();
}

suite('styles', () => {
  test('lego passes a verb, the name with a trailing dot, and the value', async (t) => {
    const calls = await bothCalls(t, { environment: { TOKEN: 'x' } });
    assert.deepEqual(
      calls.map(({ args }) => args),
      [
        ['own argument', 'present', `${name}.`, 'v-1'],
        ['own argument', 'cleanup', `${name}.`, 'v-1'],
      ],
    );
    assert.equal(calls[0]?.env.TOKEN, 'x');
  });

  test('dehydrated passes a verb, the domain, - as the file, and the value', async (t) => {
    const calls = await bothCalls(t, { style: 'dehydrated' });
    assert.deepEqual(
      calls.map(({ args }) => args.slice(1)),
      [
        ['deploy_challenge', 'www.example.test', '-', 'v-1'],
        ['clean_challenge', 'www.example.test', '-', 'v-1'],
      ],
    );
  });

  test('certbot passes environment variables, and cleans up only with cleanup_command', async (t) => {
    const [call, ...others] = await bothCalls(t, { style: 'certbot' });
    assert.equal(others.length, 0, 'no cleanup without a program for it');
    assert.deepEqual(call?.args, ['own argument']);
    assert.equal(call?.env.CERTBOT_DOMAIN, 'www.example.test');
    assert.equal(call?.env.CERTBOT_VALIDATION, 'v-1');
    const cleanup = recordingHook(tempDir(t));
    await bothCalls(t, { style: 'certbot', cleanup_command: cleanup.command });
    assert.equal(cleanup.calls()[0]?.env.CERTBOT_VALIDATION, 'v-1');
  });

  test('after a CNAME the domain comes from the record name; only lego accepts names without _acme-challenge', async (t) => {
    const hook = recordingHook(tempDir(t));
    const delegated = { ...record, name: '_acme-challenge.hosts.test' };
    for (const style of ['dehydrated', 'certbot', 'lego']) {
      await providerFor({ command: hook.command, style }).present(delegated, never);
    }
    const [dehydrated, certbot] = hook.calls();
    assert.equal(dehydrated?.args[1], 'hosts.test');
    assert.equal(certbot?.env.CERTBOT_DOMAIN, 'hosts.test');
    const elsewhere = { ...record, name: 'abc.hosts.test' };
    await providerFor({ command: hook.command }).present(elsewhere, never);
    for (const style of ['dehydrated', 'certbot']) {
      await assert.rejects(providerFor({ command: hook.command, style }).present(elsewhere, never), {
        name: 'DnsProviderError',
        message: `a hook of the style ${style} can only create records named _acme-challenge.DOMAIN, not abc.hosts.test; use the style lego`,
      });
    }
    assert.equal(hook.calls().length, 4);
  });
});

suite('failures', () => {
  const failure = async (config: object, signal = never, world: World = realWorld) => {
    try {
      await providerFor(config, world).present(record, signal);
    } catch (error) {
      assert(error instanceof DnsProviderError, String(error));
      return error.message;
    }
    return assert.fail('it went well');
  };

  test('report the exit code and the end of stderr in one line, in which secrets are hidden', async (t) => {
    const body = `console.log('not this'); console.error('x'.repeat(600)); console.error('\\x1b[31mzone\\tunknown\\n  for', process.env.TOKEN);
      process.exitCode = 7;`;
    const command = hookScript(tempDir(t), body);
    const message = await failure({ command, environment: { TOKEN: 't0ps3cret' } });
    assert.match(
      message,
      new RegExp(`^${process.execPath} failed with exit code 7: …x+ \\[31mzone unknown for \\[secret\\]$`),
    );
    assert(message.length < 600 + process.execPath.length);
  });

  test('report stdout if stderr is empty, or that there was no output', async (t) => {
    const dir = tempDir(t);
    const said = hookScript(dir, `console.log('no such zone'); process.exitCode = 1;`);
    assert.equal(
      await failure({ command: said }),
      `${process.execPath} failed with exit code 1: no such zone`,
    );
    const silent = hookScript(dir, 'process.exitCode = 1;');
    assert.equal(
      await failure({ command: silent }),
      `${process.execPath} failed with exit code 1, without any output`,
    );
  });

  test('report the signal, the timeout or the cancellation that ended the hook', async (t) => {
    const dir = tempDir(t);
    const killed = hookScript(dir, `process.kill(process.pid, 'SIGKILL');`);
    assert.match(await failure({ command: killed }), /was killed by SIGKILL, without any output$/);
    const endless = hookScript(dir, `console.error('hm'); setInterval(() => {}, 1000);`);
    assert.match(
      await failure({ command: endless, timeout: 90 }, never, new JumpingWorld()),
      /was killed after 90 s \(timeout\)(: hm|, without any output)$/,
    );
    assert.match(
      await failure({ command: endless }, AbortSignal.abort()),
      /was killed because the attempt was canceled/,
    );
  });

  test('explain how to write arguments if the program of a single string is missing', async (t) => {
    const missing = `${tempDir(t)}/hook --flag`;
    assert.match(
      await failure({ command: missing }),
      /^failed to start .*hook --flag: no such file, .*\[PATH, ARG/,
    );
  });
});

suite('settings', () => {
  const issues = (config: object) =>
    execHook.config
      .safeParse(config)
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];

  test('have defaults', () => {
    assert.deepEqual(execHook.config.parse({ command: '/hook' }), {
      ...{ command: '/hook', style: 'lego', environment: {}, timeout: 120, concurrency: 4 },
    });
  });

  test('require an absolute path', () => {
    for (const command of ['hook', './hook', '', ['hook', '/a'], []]) {
      assert.notEqual(issues({ command }).length, 0, JSON.stringify(command));
    }
    assert.match(issues({ command: 'hook' }).join(), /command: must begin with an absolute path/);
    assert.match(issues({ command: '/a\0b' }).join(), /command: must not contain a NUL character/);
    assert.match(issues({ command: 7 }).join(), /command: must be a path, or a list/);
  });

  test('reject invalid names and values of environment variables', () => {
    for (const environment of [{ 'A=B': 'x' }, { '': 'x' }, { A: 'x\0' }, { A: 1 }, []]) {
      assert.notEqual(issues({ command: '/a', environment }).length, 0, JSON.stringify(environment));
    }
  });

  test('accept cleanup_command only in the certbot style', () => {
    assert.match(
      issues({ command: '/a', cleanup_command: '/b' }).join(),
      /cleanup_command: is only for the style certbot/,
    );
    assert.deepEqual(issues({ command: '/a', cleanup_command: ['/b', 'c'], style: 'certbot' }), []);
  });
});
