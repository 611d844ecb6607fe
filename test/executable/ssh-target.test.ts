/** The executable installs a certificate by SSH: the library for it is inside. */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { toJson } from '../../src/base/json.ts';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { fromExecutable, vault } from '../harness/processes/vault-process.ts';
import { needsSshd, sshd, sshKey } from '../harness/targets/sshd.ts';
import { tempDir } from '../harness/temp-dir.ts';

test('the executable installs a certificate on a server with OpenSSH', needsSshd(), async (t) => {
  const root = tempDir(t);
  const { leaf, fullchainPath } = makeChain(root);
  const installed = join(root, 'installed');
  mkdirSync(installed);
  const user = await sshKey(t, 'ed25519', { passphrase: 'correct horse' });
  const server = await sshd(t, { authorized: [user.publicKey] });
  const settings = join(root, 'web1.yaml');
  writeFileSync(
    settings,
    toJson({
      ...{ host: server.host, port: server.port, user: server.user, host_key: server.hostKeys.ed25519 },
      ...{ private_key: user.privateKey, passphrase: 'correct horse', command: 'echo reloaded' },
      files: {
        fullchain: join(installed, '{certificate}.pem'),
        private_key: join(installed, '{certificate}.key'),
      },
    }),
  );
  const run = async (...args: string[]) => {
    const outcome = await vault([...args, '--data-dir', join(root, 'data')], { program: fromExecutable });
    assert.equal(outcome.code, 0, `${args.join(' ')}: ${outcome.stderr}`);
    return outcome.stdout + outcome.stderr;
  };
  await run(
    'certificate',
    'import',
    '--name=web',
    '--fullchain',
    fullchainPath,
    '--private-key',
    leaf.keyPath,
  );
  await run(
    ...['deploy-target', 'add', '--name=web1', '--type=ssh', '--certificate=web', '--secret-file', settings],
  );
  const allowed = ['--allow-outbound', server.host];
  assert.match(await run('deploy-target', 'run', '--name=web1', ...allowed), /^web .*web\.pem +current /m);
  assert.deepEqual(readdirSync(installed).sort(), ['web.key', 'web.pem']);
  const read = (name: string) => readFileSync(join(installed, name), 'utf8');
  assert.equal(read('web.pem').trim(), readFileSync(fullchainPath, 'utf8').trim());
  assert(new X509Certificate(read('web.pem')).checkPrivateKey(createPrivateKey(read('web.key'))));
});
