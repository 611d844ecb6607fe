/** The rotation of a private CA: what it needs, what it leaves alone, and roots of version 0.1.0. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import { day } from '../../../src/base/duration.ts';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { Secret } from '../../../src/base/secret.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { insertIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { draftAuthorities, insertAuthorities } from '../../../src/domain/private-ca/authorities.ts';
import { defaultSettings } from '../../../src/domain/private-ca/ca-settings.ts';
import { Crls } from '../../../src/domain/private-ca/crls.ts';
import { issueFromPrivateCa } from '../../../src/domain/private-ca/leaf-issuance.ts';
import { localCa, rootPem, rootPemOf } from '../../../src/domain/private-ca/local-ca.ts';
import { exportRootKey, importRootKeyFile } from '../../../src/domain/private-ca/offline-root.ts';
import { type PrivateCa, rotateRoot } from '../../../src/domain/private-ca/rotation.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const host = 'www.example.com';
const privateKey = await generatePrivateKey('ec256');

function issue(vault: Vault, ca: PrivateCa, lifetime?: number) {
  return issueFromPrivateCa(vault, ca, { identifiers: [identifier(host)], privateKey, lifetime });
}

async function prepared(t: TestContext) {
  const { vault, world } = await testVault(t);
  const { id, name } = await localCa(vault.db.reader);
  const ca = { id, name };
  return { vault, world, ca, rotate: () => rotateRoot(vault, localCli, ca) };
}

const refusal = (message: RegExp, hint: RegExp) => (error: unknown) => {
  assert(error instanceof OperatorError);
  assert.match(error.message, message);
  assert.match(error.hint ?? '', hint);
  return true;
};

const rowsOf = ({ db }: Vault) => db.reader.selectFrom('ca_certificates').selectAll().orderBy('id').execute();

const pem = (...ders: readonly Buffer[]) => ders.map((der) => encodePem('CERTIFICATE', der)).join('');

type Issued = { readonly leaf: Buffer; readonly chain: readonly Buffer[] };

/** Connects to a server with the certificate, trusting only these roots, at this time. Resolves to its verdict. */
async function connected(t: TestContext, roots: string, { leaf, chain }: Issued, at: number) {
  const key = encodePem('PRIVATE KEY', privateKey.expose());
  const server = createServer({ cert: pem(leaf, ...chain), key }, (socket) => socket.end());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const file = join(tempDir(t), 'roots');
  writeFileSync(file, roots);
  const where = ['-connect', `127.0.0.1:${port}`, '-servername', host, '-verify_hostname', host];
  const trust = ['-CAfile', file, '-no-CApath', '-no-CAstore', '-x509_strict', '-verify_return_error'];
  const time = ['-attime', String(Math.floor(at / 1000))];
  const client = promisify(execFile)('openssl', ['s_client', ...where, ...trust, ...time]);
  client.child.stdin?.end();
  const { stdout } = await client.catch((error: { stdout: string }) => error);
  await new Promise((closed) => server.close(closed));
  return /^ *Verify return code: .*$/m.exec(stdout)?.[0].trim();
}

/** What OpenSSL says about a leaf at its strictest, with the CRLs of all CA certificates, at this time. */
function verify(
  t: TestContext,
  roots: string,
  issued: Issued,
  { at, crls }: { readonly at: number; readonly crls?: Buffer },
): string {
  const dir = tempDir(t);
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(dir, name), content);
    return name;
  };
  const given = ['-CAfile', file('roots', roots), '-untrusted', file('chain', pem(...issued.chain))];
  if (crls !== undefined) given.push('-crl_check_all', '-CRLfile', file('crls', crls));
  const time = ['-attime', String(Math.floor(at / 1000))];
  const fixed = ['verify', '-x509_strict', '-no-CApath', '-no-CAstore'];
  return String(openssl(dir, ...fixed, ...time, ...given, file('leaf', pem(issued.leaf))));
}

test(
  'clients of either root connect to certificates of both until the last one of the former root expires',
  needs('openssl'),
  async (t) => {
    const { vault, world, ca, rotate } = await prepared(t);
    const former = await rootPem(vault);
    const old = await issue(vault, ca);
    const { formerUntil } = await rotate();
    const end = new X509Certificate(old.leaf).validToDate.getTime();
    assert(formerUntil >= end && formerUntil < end + day, new Date(formerUntil).toISOString());
    const crls = new Crls(vault);
    const accepted = 'Verify return code: 0 (ok)';
    for (const step of [0, 30 * day, 30 * day, end - world.now() - 60 * day - 1000]) {
      world.advance(step);
      const fresh = await issue(vault, ca);
      const current = { at: world.now(), crls: (await crls.all(ca)).body };
      for (const roots of [former, await rootPem(vault)]) {
        for (const issued of [old, fresh]) {
          assert.match(verify(t, roots, issued, current), /: OK$/m);
          assert.equal(await connected(t, roots, issued, world.now()), accepted);
        }
      }
    }
    assert.equal(
      await connected(t, former, old, end + 1000),
      'Verify return code: 10 (certificate has expired)',
    );
    assert.equal((await rootPem(vault)).split('BEGIN').length, 3);
    world.advance(formerUntil - world.now());
    const current = await rootPem(vault);
    assert.equal(current.split('BEGIN').length, 2);
    const last = { at: world.now(), crls: (await crls.all(ca)).body };
    assert.match(verify(t, current, await issue(vault, ca), last), /: OK$/m);
  },
);

test('a former root without certificates is dropped immediately after rotation', async (t) => {
  const { vault, rotate, world } = await prepared(t);
  const before = await rootPem(vault);
  const { formerUntil } = await rotate();
  assert(formerUntil <= world.now());
  assert.notEqual(await rootPem(vault), before);
  assert.equal((await rootPem(vault)).split('BEGIN').length, 2);
});

test(
  'clients that trust only the former root accept new certificates until that root expires',
  needs('openssl'),
  async (t) => {
    const { vault, world, ca, rotate } = await prepared(t);
    const former = await rootPem(vault);
    const end = new X509Certificate(former).validToDate.getTime();
    world.advance(end - world.now() - 20 * day);
    await issue(vault, ca, 10 * day);
    await rotate();
    world.advance(19 * day);
    const short = await issue(vault, ca, day / 2);
    assert.equal(short.chain.length, 2);
    assert.match(verify(t, former, short, { at: world.now() }), /: OK$/m);
    world.advance(2 * day);
    // The link has expired with the root that signed it.
    const after = await issue(vault, ca);
    assert.equal(after.chain.length, 1);
    assert.match(verify(t, await rootPem(vault), after, { at: world.now() }), /: OK$/m);
  },
);

test('a root whose key was exported is rotated only after the key is imported', async (t) => {
  const { vault, ca, rotate } = await prepared(t);
  const passphrase = new Secret('several words in a row');
  let file = Buffer.alloc(0);
  const keep = (text: string) => {
    file = Buffer.from(text);
    return file;
  };
  await exportRootKey(vault, { actor: localCli, issuer: ca.name, passphrase, keep });
  const before = await rowsOf(vault);
  await assert.rejects(
    rotate(),
    refusal(/^the vault does not hold the key of the root of local-ca$/, /vault ca import-root-key FILE/),
  );
  assert.deepEqual(await rowsOf(vault), before);
  await importRootKeyFile(vault, { actor: localCli, issuer: ca.name, file, passphrases: [passphrase] });
  await rotate();
  assert.equal((await rowsOf(vault)).filter(({ role }) => role === 'root').length, 2);
});

test('an expired root is not rotated', async (t) => {
  const { vault, world, rotate } = await prepared(t);
  world.advance(3651 * day);
  const before = await rowsOf(vault);
  await assert.rejects(
    rotate(),
    refusal(/^the root of local-ca expired at 20\d\d-/, /Add a private CA, and install its root/),
  );
  assert.deepEqual(await rowsOf(vault), before);
});

test('of two concurrent rotations, one fails and changes nothing', async (t) => {
  const { vault, ca, rotate } = await prepared(t);
  await issue(vault, ca);
  const outcomes = await Promise.allSettled([rotate(), rotate()]);
  const failed = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.equal(failed.length, 1);
  assert(
    refusal(
      /^another command replaced the root of local-ca meanwhile$/,
      /^Nothing was changed\.$/,
    )(failed[0]),
  );
  assert.deepEqual(
    (await rowsOf(vault)).map(({ role, generation }) => `${role} ${generation}`),
    ['root 0', 'intermediate 0', 'root 1', 'intermediate 0'],
  );
});

test(
  'certificates issued during a root rotation verify with the published roots',
  needs('openssl'),
  async (t) => {
    const { vault, world, ca, rotate } = await prepared(t);
    const issuing = Array.from({ length: 12 }, () => issue(vault, ca));
    const rotating = rotate();
    const more = Array.from({ length: 12 }, () => issue(vault, ca));
    const all = await Promise.all([...issuing, ...more]);
    await rotating;
    const roots = await rootPem(vault);
    for (const issued of all) assert.match(verify(t, roots, issued, { at: world.now() }), /: OK$/m);
  },
);

test(
  'a rotated root of version 0.1.0 keeps its subject, and certificates verify with the former and both roots',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const drafted = await draftAuthorities(vault, { ...defaultSettings, pathLength: 0 });
    const id = await vault.db.write(async (writer) => {
      const issuer = await insertIssuer(writer, {
        name: 'old-ca',
        type: 'local-ca',
        created_at: world.now(),
      });
      await insertAuthorities(vault, writer, issuer, drafted);
      return issuer;
    });
    const ca = { id, name: 'old-ca' };
    // Its intermediate was made as that version made it.
    const former = await rootPemOf(vault, ca);
    await vault.db.write((writer) =>
      writer
        .deleteFrom('ca_certificates')
        .where('role', '=', 'intermediate')
        .where('issuer_id', '=', id)
        .execute(),
    );
    const old = await issue(vault, ca);
    const { isTight } = await rotateRoot(vault, localCli, ca);
    assert.equal(isTight, true);
    const fresh = await issue(vault, ca);
    const both = await rootPemOf(vault, ca);
    const names = both
      .split(/(?<=END CERTIFICATE-----\n)/)
      .slice(0, 2)
      .map((text) => new X509Certificate(text).subject);
    assert.equal(names[0], names[1]);
    for (const roots of [former, both]) {
      for (const issued of [old, fresh])
        assert.match(verify(t, roots, issued, { at: world.now() }), /: OK$/m);
    }
  },
);
