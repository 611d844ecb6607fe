/** PKCS#12 files that the vault writes, read by OpenSSL, by Java and by the vault itself. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { realWorld } from '../../../src/base/world.ts';
import { readPkcs12 } from '../../../src/crypto/bundles/pkcs12.ts';
import {
  type KeystoreContents,
  type KeystoreEncryption,
  keystoreEncryptions,
  writePkcs12,
} from '../../../src/crypto/bundles/pkcs12-writer.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { type Chain, makeChain } from '../../harness/ca/openssl-chain.ts';
import { quickKeytool } from '../../harness/processes/java.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const dir = mkdtempSync(join(tmpdir(), 'pkcs12-writer-'));
after(() => rmSync(dir, { recursive: true }));

let made: Chain | undefined;
function contents(): KeystoreContents {
  made ??= makeChain(dir);
  const blocks = made.fullchainPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [leaf, ...chain] = blocks.map((pem) => new X509Certificate(pem).raw);
  assert(leaf && chain.length === 2);
  const key = createPrivateKey(made.leaf.keyPem).export({ type: 'pkcs8', format: 'der' });
  return { name: 'www', certificates: [leaf, ...chain], privateKey: new Secret(key) };
}

const passwords = ['changeit', 'x', '~'.repeat(128), 'a b:c"\'\\$', 'pässwörd', '密码🔑', '🔑'.repeat(128)];

async function written(
  password: string,
  encryption: KeystoreEncryption,
  changed?: Partial<KeystoreContents>,
) {
  return writePkcs12(realWorld, { ...contents(), ...changed }, new Secret(password), encryption);
}

function withOpenssl(file: Buffer, password: string, ...options: string[]) {
  const [path, passwordPath] = [join(dir, 'out.p12'), join(dir, 'password')];
  writeFileSync(path, file);
  writeFileSync(passwordPath, password);
  const args = ['pkcs12', '-in', path, '-passin', `file:${passwordPath}`, '-nodes', ...options];
  return spawnSync('openssl', args, { encoding: 'utf8' });
}

suite('a PKCS#12 file', needs('openssl'), () => {
  for (const encryption of keystoreEncryptions) {
    test(`with ${encryption} opens in OpenSSL with ASCII, Unicode and long passwords and not with a wrong one`, async () => {
      const { certificates, privateKey } = contents();
      for (const password of passwords) {
        const file = await written(password, encryption);
        const { stdout, status, stderr } = withOpenssl(file, password);
        assert.equal(status, 0, `${password}: ${stderr}`);
        const found = stdout.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
        assert.deepEqual(
          found.map((pem) => new X509Certificate(pem).raw.toString('hex')),
          certificates.map((der) => der.toString('hex')),
        );
        const key = createPrivateKey(stdout.slice(stdout.indexOf('-----BEGIN PRIVATE KEY')));
        assert(key.export({ type: 'pkcs8', format: 'der' }).equals(privateKey.expose()));
        assert.match(stdout, /friendlyName: www\n/);
        assert.notEqual(withOpenssl(file, `${password}.`).status, 0);
      }
    });

    test(`with ${encryption} opens in the vault itself, for each type of key`, async () => {
      for (const type of ['rsa2048', 'ec384', 'ed25519'] as const) {
        const privateKey = await generatePrivateKey(type);
        const [, ...certificates] = contents().certificates;
        const file = await written('changeit', encryption, {
          privateKey,
          certificates: certificates as [Buffer, ...Buffer[]],
        });
        const read = readPkcs12(file, new Secret('changeit'), 'out.p12');
        assert(read.privateKey?.expose().equals(privateKey.expose()));
        assert.equal(read.certificates.length, certificates.length);
      }
    });
  }

  test('uses AES-256, PBKDF2 and SHA-256, or triple DES and SHA-1 for legacy', async () => {
    const modern = withOpenssl(await written('changeit', 'aes256'), 'changeit', '-info').stderr;
    assert.match(modern, /^MAC: sha256, Iteration 10000$/m);
    const parts = modern.match(/PBES2, PBKDF2, AES-256-CBC, Iteration 10000, PRF hmacWithSHA256$/gm);
    assert.equal(parts?.length, 2);
    const legacy = withOpenssl(await written('changeit', 'legacy'), 'changeit', '-info').stderr;
    assert.match(legacy, /^MAC: sha1, Iteration 2000$/m);
    assert.equal(legacy.match(/pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2000$/gm)?.length, 2);
  });
});

/** What Java's keytool says about a file, with a password file that it reads as UTF-8. */
async function withKeytool(password: string, encryption: KeystoreEncryption) {
  const [path, passwordPath] = [join(dir, 'java.p12'), join(dir, 'java-password')];
  writeFileSync(path, await written(password, encryption));
  writeFileSync(passwordPath, password);
  const args = ['-list', '-v', '-keystore', path, '-storepass:file', passwordPath];
  const languages = ['-J-Duser.language=en', '-J-Dfile.encoding=UTF-8'];
  return spawnSync('keytool', [...args, ...languages, ...quickKeytool], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

suite('Java', needs('keytool'), () => {
  for (const encryption of keystoreEncryptions) {
    test(`reads a file with ${encryption} and a password of printable ASCII`, async () => {
      for (const password of ['changeit', '~'.repeat(128), 'a b:c"\'\\$']) {
        const { status, stdout } = await withKeytool(password, encryption);
        assert.equal(status, 0, stdout);
        assert.match(stdout, /Alias name: www\n/);
        assert.match(stdout, /Entry type: PrivateKeyEntry\nCertificate chain length: 3\n/);
      }
    });

    // It is the limit that the documentation states. OpenSSL opens the same files.
    test(`rejects the right non-ASCII password of a file with ${encryption}`, async () => {
      for (const password of ['pässwörd', '密码密码密码', '🔑🔑🔑🔑']) {
        const { status, stdout } = await withKeytool(password, encryption);
        assert.equal(status, 1, stdout);
        assert.match(stdout, /keystore password was incorrect/);
        assert.match(stdout, /Password is not ASCII/);
        assert.equal(withOpenssl(await written(password, encryption), password).status, 0);
      }
    });
  }
});

test('equal contents and password give equal bytes; any difference changes every salt', async () => {
  const first = await written('changeit', 'aes256');
  assert(first.equals(await written('changeit', 'aes256')));
  const { certificates } = contents();
  const others = [
    first,
    await written('changeit2', 'aes256'),
    await written('changeit', 'legacy'),
    await written('changeit', 'aes256', { name: 'www2' }),
    await written('changeit', 'aes256', { certificates: [certificates[0]] }),
    await written('changeit', 'aes256', { privateKey: await generatePrivateKey('ec256') }),
  ];
  const salts = others.flatMap((file) => saltsIn(file));
  assert.equal(salts.length, 5 * 3 + 3, 'each file has three salts');
  assert.equal(new Set(salts).size, salts.length);
});

/** The salts of a file: octet strings of 16 or 8 bytes in front of the number of rounds. */
function saltsIn(file: Buffer): string[] {
  const hex = file.toString('hex');
  const found = [...hex.matchAll(/04(?:10(.{32})02022710|08(.{16})020207d0)/g)];
  return found.map(([, long, short]) => long ?? short ?? '');
}
