/** Imports over HTTP: what was understood before anything is stored, and what is stored then. */
import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { suite, test } from 'node:test';
import { generatePrivateKey } from '../../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../../src/crypto/pem.ts';
import { issueFromLocalCa } from '../../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../../src/domain/vault.ts';
import { identifier, makeChain } from '../../../harness/ca/private-chain.ts';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import { pkcs12Bomb } from '../../../harness/import-bombs.ts';

const path = '/api/v1/imports';

type Problem = { code: string; detail: string };

/** Files of a certificate as people have them. */
async function files(vault: Vault, domain = 'www.example.test') {
  const privateKey = await generatePrivateKey('ec256');
  const identifiers = [identifier(domain)];
  const { leaf, chain } = await issueFromLocalCa(vault, { identifiers, privateKey, lifetime: undefined });
  const fullchain = [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join('');
  const key = encodePem('PRIVATE KEY', privateKey.expose());
  return { fullchain, key, leaf: encodePem('CERTIFICATE', leaf), secret: key.split('\n')[1] ?? '' };
}

suite('imported files', () => {
  test('are rejected if decrypting PKCS#12 takes too long, without blocking downloads', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'web');
    const { raw } = await makeKey(server.vault);
    const bomb = { name: 'site.p12', content_base64: pkcs12Bomb('secret', 2 ** 31 - 1).toString('base64') };
    let isRefused = false;
    const refused = expect<Problem>(400, 'POST', `${path}/preview`, { files: [bomb], password: 'secret' });
    void refused.finally(() => {
      isRefused = true;
    });
    for (let count = 0; count < 20; count += 1) {
      assert.equal((await server.get('/api/v1/certificates/web/fullchain.pem', raw)).status, 200);
    }
    assert.equal(isRefused, false);
    assert.match((await refused).detail, /^site\.p12 takes more than 5 seconds .* `openssl pkcs12 -legacy /);
    assert.equal((await expect<unknown[]>(200, 'GET', '/api/v1/certificates')).length, 1);
  });

  test('are rejected without showing key material, and nothing is stored', async (t) => {
    const { server, expect, said } = await administration(t);
    const { fullchain, key, secret } = await files(server.vault);
    const stranger = await files(server.vault);
    const text = (name: string, content: string) => ({ name, text: content });
    const wrong: [object[], RegExp][] = [
      [[text('a.pem', fullchain)], /No private key found in a\.pem/],
      [[text('key.pem', key)], /No certificate found in key\.pem/],
      [[text('a.pem', fullchain), text('key.pem', stranger.key)], /does not match any of the certificates/],
      [[text('a.pem', 'nonsense')], /neither a certificate nor a private key/],
      [[{ name: 'a.p12', content_base64: 'AAAA' }], /a\.p12/],
    ];
    for (const target of [path, `${path}/preview`]) {
      const name = target === path ? { name: 'bought' } : {};
      for (const [list, detail] of wrong) {
        assert.match((await expect<Problem>(400, 'POST', target, { ...name, files: list })).detail, detail);
      }
      await expect(400, 'POST', target, { ...name, files: [] });
      await expect(400, 'POST', target, { ...name, files: [{ name: 'a', content_base64: '!' }] });
      await expect(400, 'POST', target, { ...name, files: [{ name: 'a' }] });
      const large = text('large.pem', 'x'.repeat(1_100_000));
      const refused = await expect<Problem>(413, 'POST', target, { ...name, files: [large] });
      assert.match(refused.detail, /large\.pem is larger than 1 MiB/);
      const larger = await expect<Problem>(413, 'POST', target, {
        ...name,
        files: [text('large.pem', 'x'.repeat(4_300_000))],
      });
      assert.match(larger.detail, /larger than 4 MiB/);
    }
    assert.deepEqual(await expect(200, 'GET', '/api/v1/certificates'), []);
    assert(!said().includes(secret) && !said().includes(stranger.secret));
    assert(!server.log.lines.join('\n').includes(secret));
  });

  test('are described in the preview with a suggested name, and nothing is stored', async (t) => {
    const { server, expect, said } = await administration(t);
    const { leaf, key, secret } = await files(server.vault);
    const body = {
      files: [
        { name: 'key', text: key },
        { name: 'cert', content_base64: Buffer.from(leaf).toString('base64') },
      ],
    };
    const preview = await expect(200, 'POST', `${path}/preview`, body);
    const { serial, fingerprint_sha256, issuer, warnings, ...rest } = preview as Record<string, never> & {
      certificate: Record<string, unknown>;
    };
    assert.deepEqual([serial, fingerprint_sha256, issuer], [undefined, undefined, undefined]);
    assert.match(String(warnings), /^The intermediate certificate of .* is missing/);
    assert.deepEqual(rest.certificate.domains, ['www.example.test']);
    assert.equal(rest.certificate.key_type, 'ec256');
    assert.equal((preview as { suggested_name: string }).suggested_name, 'www.example.test');
    assert.deepEqual(await expect(200, 'GET', '/api/v1/certificates'), []);
    assert(!said().includes(secret));
  });

  test('create a certificate, then its next version, each recorded with the administrator', async (t) => {
    const { server, expect, ask } = await administration(t);
    type Imported = { certificate: { issuer: null; status: string }; version: number; warnings: string[] };
    const given = async (domain?: string) => {
      const { fullchain, key } = await files(server.vault, domain);
      return { body: { name: 'bought', files: [{ name: 'all.pem', text: fullchain + key }] }, key };
    };
    const first = await given();
    const imported = await expect<Imported>(201, 'POST', path, first.body);
    assert.deepEqual([imported.version, imported.certificate.status, imported.warnings], [1, 'valid', []]);
    assert.equal((await expect<Imported>(201, 'POST', path, (await given()).body)).version, 2);
    const kept = await ask('GET', '/api/v1/certificates/bought/private.key?version=1');
    assert(createPrivateKey(kept.text).equals(createPrivateKey(first.key)));
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.import').map(({ actor, detail }) => [actor, detail.version]),
      [
        ['admin:alice', 1],
        ['admin:alice', 2],
      ],
    );
  });

  test('change nothing when they are imported again, and say so, unless forced', async (t) => {
    const { server, expect } = await administration(t);
    type Imported = { changed: boolean; version: number; certificate: { name: string } };
    const { fullchain, key } = await files(server.vault);
    const body = { name: 'bought', files: [{ name: 'all.pem', text: fullchain + key }] };
    const outcomes: (readonly [boolean, number, string])[] = [];
    for (const force of [undefined, undefined, false, true]) {
      const given = { ...body, ...(force !== undefined && { force }) };
      const { changed, version, certificate } = await expect<Imported>(201, 'POST', path, given);
      outcomes.push([changed, version, certificate.name]);
    }
    assert.deepEqual(outcomes, [
      [true, 1, 'bought'],
      [false, 1, 'bought'],
      [false, 1, 'bought'],
      [true, 2, 'bought'],
    ]);
    assert.equal(eventsOf(server.dataDir, 'certificate.import').length, 2);
  });

  test('may contain a CA certificate only with allow_ca, in the preview too', async (t) => {
    const { expect } = await administration(t);
    const { root } = await makeChain();
    const pem =
      encodePem('CERTIFICATE', root.certificate) + encodePem('PRIVATE KEY', root.privateKey.expose());
    const given = { files: [{ name: 'ca.pem', text: pem }] };
    for (const [target, named, status] of [
      [`${path}/preview`, {}, 200],
      [path, { name: 'printer' }, 201],
    ] as const) {
      for (const refusing of [{}, { allow_ca: false }]) {
        const { detail } = await expect<Problem>(400, 'POST', target, { ...named, ...given, ...refusing });
        assert.match(detail, /belongs to a CA certificate .*`allow_ca`/);
      }
      const { warnings } = await expect<{ warnings: string[] }>(status, 'POST', target, {
        ...named,
        ...given,
        allow_ca: true,
      });
      assert.deepEqual(warnings, []);
    }
  });

  test('do not replace a certificate that an issuer renews', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    const { fullchain, key } = await files(server.vault);
    const body = { name: 'www', files: [{ name: 'all.pem', text: fullchain + key }] };
    assert.equal((await expect<Problem>(409, 'POST', path, body)).code, 'certificate_exists');
  });
});
