/**
 * A look at the disk of a vault in use: no file of the data directory holds a private key, an API key or the master key
 * in clear, in any of the forms that somebody who finds the disk would look for.
 */

import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

type Named = readonly [name: string, value: Buffer];

/** The parts of a private key by which it could be known: its numbers, its DER and the lines of its PEM. */
function partsOf(name: string, pem: string): Named[] {
  const key = createPrivateKey(pem);
  const jwk = key.export({ format: 'jwk' });
  const numbers = (['d', 'p', 'q', 'dp', 'dq', 'qi'] as const).flatMap((part): Named[] => {
    const value = jwk[part];
    return typeof value === 'string' ? [[`${part} of ${name}`, Buffer.from(value, 'base64url')]] : [];
  });
  // The first of several lines names the algorithm; lines of the public key stand in the certificate as well.
  const lines = pem.split('\n').filter((line) => line.length >= 20 && !line.startsWith('-'));
  const open = createPublicKey(key).export({ format: 'der', type: 'spki' });
  const long = (lines.length > 1 ? lines.slice(1) : lines).filter(
    (line) => !open.includes(Buffer.from(line, 'base64')),
  );
  assert.ok(long.length > 0, name);
  return [
    ...numbers,
    [`PKCS#8 of ${name}`, key.export({ format: 'der', type: 'pkcs8' })],
    ...long.map((line): Named => [`a line of ${name}`, Buffer.from(line)]),
  ];
}

test('no file holds a private key, an API key or the master key in clear', needs('openssl'), async (t) => {
  const folder = tempDir(t);
  const dir = join(folder, 'data');
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', dir]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const pems = new Map<string, string>();
  for (const keyAlgorithm of ['ec384', 'rsa2048'] as const) {
    const name = `imported-${keyAlgorithm}`;
    const { fullchainPath, leaf } = makeChain(folder, { label: keyAlgorithm, keyAlgorithm });
    await run(
      'certificate',
      'import',
      `--name=${name}`,
      '--fullchain',
      fullchainPath,
      '--private-key',
      leaf.keyPath,
    );
    pems.set(name, leaf.keyPem);
  }
  const types = ['ec256', 'ed25519', 'rsa2048'];
  for (const type of types)
    await run('certificate', 'create', `--name=${type}`, '--domain=a.test', '--key-type', type);
  const create = (name: string, certificate: string) =>
    run(
      ...['api-key', 'create', '--name', name, '--certificate', certificate],
      ...['--scope=private_keys:read', '--scope=renewals:trigger'],
    );
  const raws = [await create('client', '*'), await create('revoked', 'ec256')];
  await run('api-key', 'revoke', '--id=2');

  const server = await serve(t, dir);
  const request = (path: string, init: RequestInit = {}) => {
    const headers = { Authorization: `Bearer ${raws[0]}` };
    return fetch(`${server.url}/api/v1/certificates/${path}`, { ...init, headers });
  };
  for (const type of types) pems.set(type, await (await request(`${type}/private.key`)).text());
  const { id } = (await (await request('ec256/renew', { method: 'POST' })).json()) as { id: number };
  await eventually('the renewal has succeeded', async () => {
    const { status } = (await (await request(`ec256/renewals/${id}`)).json()) as { status: string };
    return status === 'succeeded';
  });
  pems.set('renewed', await (await request('ec256/private.key')).text());
  assert.notEqual(pems.get('renewed'), pems.get('ec256'));

  const masterKey = readFileSync(join(dir, 'master.key'));
  const secrets: Named[] = [...pems].flatMap(([name, pem]) => partsOf(name, pem));
  for (const raw of raws) {
    const secret = raw.split('.')[1] ?? '';
    secrets.push(
      ['an API key', Buffer.from(secret)],
      ['an API key, decoded', Buffer.from(secret, 'base64url')],
    );
  }
  const encodings = ['hex', 'base64', 'base64url'] as const;
  const searched = [...secrets, ['the master key', masterKey] as const].flatMap(([name, value]): Named[] => [
    [name, value],
    ...encodings.map((encoding): Named => [`${name}, ${encoding}`, Buffer.from(value.toString(encoding))]),
  ]);
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  assert.ok(files.includes('vault.db-wal'), 'the server runs, so that the write-ahead log is searched too');
  for (const file of files.filter((name) => name !== 'master.key')) {
    const content = readFileSync(join(dir, file));
    assert.ok(content.length === 0 || !content.includes('PRIVATE KEY-----'), file);
    for (const [name, value] of searched) assert.ok(!content.includes(value), `${name} in ${file}`);
  }
  for (const raw of raws)
    assert.ok(!server.log().includes(raw.split('.')[1] ?? raw), 'an API key in the log');
});
