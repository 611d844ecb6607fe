/** Downloads in other formats: contents, headers, conditions, passwords and records. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { Secret } from '../../../../src/base/secret.ts';
import { readPkcs12 } from '../../../../src/crypto/bundles/pkcs12.ts';
import { checkedServer, codeOf } from '../../../harness/http/checked.ts';
import {
  breakSealedKeys,
  eventsOf,
  makeCertificate,
  makeKey,
  makePending,
  renewCertificate,
} from '../../../harness/http/fixtures.ts';
import { needs } from '../../../harness/processes/missing-program.ts';

const www = '/api/v1/certificates/www';
const files = ['combined.pem', 'certificate.der', 'keystore.p12', 'archive.tar'] as const;
const changeit = { 'Keystore-Password': 'changeit' };

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'www');
  const { raw, actor } = await makeKey(server.vault);
  const get = (file: string, headers: Record<string, string> = changeit, method = 'GET') =>
    server.get(file.startsWith('/') ? file : `${www}/${file}`, raw, { headers, method });
  const bytes = async (file: string, headers?: Record<string, string>) => {
    const response = await get(file, headers);
    assert.equal(response.status, 200, file);
    return Buffer.from(await response.arrayBuffer());
  };
  const text = async (file: string) => (await bytes(file)).toString();
  return { server, raw, actor, get, bytes, text };
}

/** Opens a keystore and shows its certificates as PEM. */
function opened(file: Buffer, password: string) {
  const { certificates, privateKey } = readPkcs12(file, new Secret(password), 'keystore.p12');
  assert(privateKey);
  const key = createPrivateKey({ key: privateKey.expose(), format: 'der', type: 'pkcs8' });
  return { certificates: certificates.map((der) => new X509Certificate(der).toString()), key };
}

suite('the formats', () => {
  test('are key and full chain in combined.pem, the leaf as DER, and a keystore with key and chain', async (t) => {
    const { bytes, text } = await prepared(t);
    const [key, fullchain] = [await text('private.key'), await text('fullchain.crt')];
    assert.equal(await text('combined.pem'), key + fullchain);
    const leaf = new X509Certificate(await text('certificate.crt'));
    assert((await bytes('certificate.der')).equals(leaf.raw));
    for (const file of ['keystore.p12', 'keystore.p12?encryption=aes256', 'keystore.p12?encryption=legacy']) {
      const keystore = opened(await bytes(file), 'changeit');
      assert.equal(keystore.certificates.join(''), fullchain);
      assert(leaf.checkPrivateKey(keystore.key));
    }
  });

  test('have a type, a safe name, a strong tag and the cache rules of what they hold', async (t) => {
    const { server, get } = await prepared(t);
    const types = [
      'application/x-pem-file',
      'application/pkix-cert',
      'application/pkcs12',
      'application/x-tar',
    ];
    await makeCertificate(server.vault, '*.example.test', ['*.example.test']);
    const tags = new Set<string | null>();
    for (const [index, file] of files.entries()) {
      const { headers } = await get(`/api/v1/certificates/*.example.test/${file}`);
      assert.equal(headers.get('Content-Type'), types[index]);
      assert.equal(headers.get('Content-Disposition'), `attachment; filename="_.example.test-${file}"`);
      assert.match(headers.get('ETag') ?? '', /^"[A-Za-z0-9_-]{24}"$/);
      assert.equal(headers.get('Certificate-Version'), '1');
      const isPublic = file === 'certificate.der';
      assert.equal(headers.get('Cache-Control'), isPublic ? 'private, no-cache' : 'no-store');
      assert.equal(headers.get('Vary'), index < 2 ? null : 'Keystore-Password');
      tags.add(headers.get('ETag'));
    }
    assert.equal(tags.size, files.length);
  });

  test('are the same bytes each time, and 304 without a record or a decryption', async (t) => {
    const { server, actor, get, bytes } = await prepared(t);
    const tags = new Map<string, string>();
    for (const file of files) {
      const first = await get(file);
      tags.set(file, first.headers.get('ETag') ?? '');
      assert((await bytes(file)).equals(Buffer.from(await first.arrayBuffer())), file);
      const head = await get(file, changeit, 'HEAD');
      assert.equal(head.headers.get('Content-Length'), first.headers.get('Content-Length'));
      assert.equal(head.headers.get('ETag'), tags.get(file));
    }
    const events = eventsOf(server.dataDir, 'certificate.download');
    assert.deepEqual(
      events.map((event) => [event.actor, event.resource, event.detail]),
      files.flatMap((artifact) => Array(2).fill([actor, 'certificate:www', { artifact, version: 1 }])),
    );
    breakSealedKeys(server.dataDir);
    for (const file of files) {
      const same = await get(file, { ...changeit, 'If-None-Match': tags.get(file) ?? '' });
      assert.deepEqual([same.status, same.headers.get('ETag'), await same.text()], [304, tags.get(file), '']);
    }
    assert.equal(eventsOf(server.dataDir, 'certificate.download').length, events.length);
    assert.equal((await get('combined.pem')).status, 500);
    assert.equal(eventsOf(server.dataDir, 'certificate.download').length, events.length);
  });

  test('belong to a version, which can be pinned', async (t) => {
    const { server, get, bytes } = await prepared(t);
    const before = await Promise.all(files.map((file) => bytes(file)));
    await renewCertificate(server.vault, 'www');
    for (const [index, file] of files.entries()) {
      assert(!(await bytes(file)).equals(before[index] as Buffer), file);
      const pinned = await get(`${file}?version=1`);
      assert.equal(pinned.headers.get('Certificate-Version'), '1');
      assert(Buffer.from(await pinned.arrayBuffer()).equals(before[index] as Buffer), file);
      assert.equal(await codeOf(await get(`${file}?version=9`)), 'version_not_found');
    }
  });

  test('require the scope of their contents, the allowlist, and an issued certificate', async (t) => {
    const { server, get } = await prepared(t);
    await makePending(server.vault, 'pending');
    const reader = await makeKey(server.vault, { scopes: ['certificates:read'] });
    const other = await makeKey(server.vault, { certificates: ['pending'] });
    for (const file of files) {
      const read = await server.get(`${www}/${file}`, reader.raw, { headers: changeit });
      assert.equal(read.status, file === 'certificate.der' ? 200 : 403, file);
      assert.equal((await server.get(`${www}/${file}`, other.raw, { headers: changeit })).status, 403);
      assert.equal((await server.get(`${www}/${file}`, undefined, { headers: changeit })).status, 401);
      assert.equal(await codeOf(await get(`/api/v1/certificates/pending/${file}`)), 'no_current_version');
      assert.equal(await codeOf(await get(`/api/v1/certificates/absent/${file}`)), 'certificate_not_found');
    }
  });
});

suite('the password of a keystore', () => {
  test('is UTF-8 in the header, or percent-encoded', async (t) => {
    const { server, raw, bytes } = await prepared(t);
    const password = 'пароль é 🔑';
    const authorization = `Authorization: Bearer ${raw}`;
    const encoded = `UTF-8''${encodeURIComponent(password)}`;
    const sent = Buffer.from(password).toString('latin1');
    const first = await bytes('keystore.p12', { 'Keystore-Password': sent });
    assert(first.equals(await bytes('keystore.p12', { 'Keystore-Password': encoded })));
    assert.equal(opened(first, password).certificates.length, 2);
    const spaces = await bytes('keystore.p12', { 'Keystore-Password': "utf-8''%20x%20" });
    assert.equal(opened(spaces, ' x ').certificates.length, 2);
    const twice = ['Keystore-Password: a', 'Keystore-Password: b'];
    const { status, body } = await server.raw('GET', `${www}/keystore.p12`, [authorization, ...twice]);
    assert.equal(status, 400);
    assert.match(body, /more than once/);
  });

  test('is rejected when it is missing, empty, too long, not UTF-8 or has control characters', async (t) => {
    const { server, get } = await prepared(t);
    const refused = ['', '\xe9', "UTF-8''%E9", "UTF-8''%", "UTF-8''", "UTF-8''%00", 'x'.repeat(129)];
    for (const password of [undefined, ...refused]) {
      const headers: Record<string, string> = password === undefined ? {} : { 'Keystore-Password': password };
      const response = await get('keystore.p12', headers);
      assert.equal(response.status, 400, password ?? 'none');
      const problem = (await response.json()) as { code: string; detail: string };
      assert.equal(problem.code, 'invalid_request');
      assert.match(problem.detail, /password/i);
      if (password !== undefined && password.length > 20) assert(!problem.detail.includes(password));
      if (password !== undefined) assert.equal((await get('archive.tar', headers)).status, 400, password);
    }
    assert.equal((await get('keystore.p12?encryption=rc2')).status, 400);
    assert.equal((await get('combined.pem?encryption=legacy')).status, 400);
    assert.equal(eventsOf(server.dataDir, 'certificate.download').length, 0);
  });

  test('changes the entity tag, as does the encryption', async (t) => {
    const { get } = await prepared(t);
    const tags = new Set<string | null>();
    for (const file of ['keystore.p12', 'keystore.p12?encryption=legacy', 'archive.tar']) {
      for (const password of ['changeit', 'changeit2', '']) {
        if (password === '' && file !== 'archive.tar') continue;
        const response = await get(file, password === '' ? {} : { 'Keystore-Password': password });
        tags.add(response.headers.get('ETag'));
      }
    }
    assert.equal(tags.size, 7);
  });
});

suite('archive.tar', needs('tar'), () => {
  test('holds all files of one version, private ones readable by their owner alone', async (t) => {
    const { get, bytes } = await prepared(t);
    const names = 'certificate.crt chain.crt fullchain.crt private.key combined.pem certificate.der'.split(
      ' ',
    );
    for (const headers of [{}, changeit] as Record<string, string>[]) {
      const archive = await bytes('archive.tar', { ...headers });
      const listed = execFileSync('tar', ['-tv'], { input: archive, encoding: 'utf8' });
      const all = 'Keystore-Password' in headers ? [...names, 'keystore.p12'] : names;
      const secret = /private|combined|keystore/;
      assert.deepEqual(
        listed
          .trim()
          .split('\n')
          .map((line) => [line.slice(0, 10), line.split(' ').at(-1)]),
        all.map((name) => [secret.test(name) ? '-rw-------' : '-rw-r--r--', name]),
      );
      for (const name of all) {
        const member = execFileSync('tar', ['-xO', name], { input: archive });
        assert(member.equals(await bytes(name)), name);
      }
    }
    assert.equal((await get('archive.tar?encryption=legacy')).status, 200);
  });
});

test('concurrent keystore downloads are all complete', async (t) => {
  const { bytes } = await prepared(t);
  const passwords = Array.from({ length: 12 }, (_, index) => `password ${index}`);
  const made = await Promise.all(
    passwords.map((password) => bytes('keystore.p12', { 'Keystore-Password': password })),
  );
  for (const [index, password] of passwords.entries()) {
    assert.equal(opened(made[index] as Buffer, password).certificates.length, 2);
  }
});
