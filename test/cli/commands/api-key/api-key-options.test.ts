/** `--client-certificate` of the commands for API keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';

type Key = { readonly name: string; readonly client_certificate: string | null };

test('--client-certificate binds a key, is listed, changed and removed, and nothing else changes it', async (t) => {
  const { done, run } = commandLine(t);
  for (const name of ['web-1', 'web-2']) {
    await done('certificate', 'create', `--name=${name}`, `--domain=${name}.test`, '--usage=client');
  }
  const rights = ['--scope=certificates:read', '--certificate=*'];
  await done('api-key', 'create', '--name=www', ...rights, '--client-certificate', 'web-1');
  await done('api-key', 'create', '--name=free', ...rights);
  const bindings = async () => {
    const keys = JSON.parse((await done('api-key', 'list')).stdout) as Key[];
    return keys.map(({ client_certificate }) => client_certificate);
  };
  assert.deepEqual(await bindings(), ['web-1', null]);
  const { stdout } = await done('api-key', 'list', '--table');
  assert.match(stdout, /CLIENT CERTIFICATE/);
  assert.match(stdout, /www .* web-1 .*\n.*free .* - /);
  await done('api-key', 'update', 'www', '--allow-ip=192.0.2.0/24');
  await done('api-key', 'rotate', 'www');
  assert.deepEqual(await bindings(), ['web-1', null]);
  await done('api-key', 'update', 'www', '--client-certificate=web-2');
  assert.deepEqual(await bindings(), ['web-2', null]);
  await done('api-key', 'update', 'www', '--client-certificate=none');
  assert.deepEqual(await bindings(), [null, null]);
  const { code, stderr } = await run('api-key', 'update', 'www', '--client-certificate=web-3');
  assert.equal(code, 1);
  assert.match(stderr, /unknown certificate "web-3"/);
});
