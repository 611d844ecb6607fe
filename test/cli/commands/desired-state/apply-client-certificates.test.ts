/** `vault apply` and `vault export` with API keys that are bound to client certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';

const certificates = `version: 1
certificates:
  web-1: {domains: [web-1.test], usage: client}
  server: {domains: [server.test], usage: server}
`;

const key = (name: string, binding: string) =>
  `  ${name}: {scopes: [certificates:read], certificates: ["*"], secret_file: ${name}.key${binding}}\n`;

test('a bound key is created with its certificate, exported, unbound, and unchanged by a second run', async (t) => {
  const { file, done } = commandLine(t);
  const bound = file(`${certificates}api_keys:\n${key('www', ', client_certificate: web-1')}`, 'bound.yaml');
  assert.match(
    (await done('apply', '-f', bound)).stdout,
    /\+ api-key www\n.*\n.*\n {4}client_certificate: web-1\n/,
  );
  assert.match((await done('apply', '-f', bound)).stdout, /^No changes/);
  assert.match((await done('export')).stdout, /client_certificate: web-1/);
  const free = file(`${certificates}api_keys:\n${key('www', '')}`, 'free.yaml');
  assert.match((await done('apply', '-f', free)).stdout, /client_certificate: web-1 (→|->) /);
  assert.doesNotMatch((await done('export')).stdout, /client_certificate/);
});

test('a key that cannot be bound as the document has it is rejected by path before anything changes', async (t) => {
  const { file, run, done } = commandLine(t);
  await done('certificate', 'create', '--name=kept', '--domain=kept.test');
  const keys = [
    key('first', ', client_certificate: missing'),
    key('second', ', client_certificate: server'),
    key('third', ', client_certificate: kept'),
  ];
  const path = file(`${certificates}api_keys:\n${keys.join('')}`, 'desired.yaml');
  const { code, stderr } = await run('apply', '-f', path, '--prune', '--yes');
  assert.equal(code, 1);
  assert.match(stderr, /api_keys\.first\.client_certificate: unknown certificate "missing"/);
  assert.match(stderr, /api_keys\.second\.client_certificate: "server" is issued for servers only/);
  assert.match(
    stderr,
    /api_keys\.third\.client_certificate: certificate kept would be removed, but this key is bound to it/,
  );
  assert.equal((await done('api-key', 'list')).stdout.trim(), '[]');
});
