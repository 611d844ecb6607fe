/** Certificates as CAs hand them out: the right one with its chain, the preferred chain, and what is refused. */
import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { before, test } from 'node:test';
import type { AcmeClient } from '../../src/acme/acme-client.ts';
import type { AcmeAccount } from '../../src/acme/acme-types.ts';
import { downloadCertificate, type WantedCertificate } from '../../src/acme/issued-certificate.ts';
import { publicKeyOf } from '../../src/crypto/key-pair.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import { issueIntermediate } from '../../src/crypto/x509/x509-issuance.ts';
import { dates, makeChain, makeLeaf, type PrivateChain } from '../harness/ca/private-chain.ts';
import { type ScriptedAcme, type ScriptedReply, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  dnsNames,
  forever,
  isAcmeError,
  issuedOrder,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

const mediaType = 'application/pem-certificate-chain';
const pem = (...ders: readonly Buffer[]) => ders.map((der) => encodePem('CERTIFICATE', der)).join('');
const reply = (body: string | Buffer, type = mediaType): ScriptedReply => ({
  body,
  headers: { 'Content-Type': type },
});

let chain: PrivateChain;
let other: PrivateChain;
let leaf: Buffer;
let wanted: WantedCertificate;

before(async () => {
  [chain, other] = await Promise.all([makeChain(), makeChain()]);
  leaf = chain.leaf.certificate;
  wanted = {
    publicKey: publicKeyOf(chain.leaf.privateKey),
    identifiers: dnsNames('www.example.com', '*.example.org', '127.0.0.1', '2001:DB8:0::1'),
    preferredChain: undefined,
  };
});

/** Downloads what the CA is made to answer. */
async function download(
  { ca, client, account }: { ca: ScriptedAcme; client: AcmeClient; account: AcmeAccount },
  answer: ScriptedReply,
  changes: Partial<WantedCertificate> = {},
) {
  ca.override('certificate', answer);
  const url = `${ca.origin}/order/1/certificate`;
  return downloadCertificate(client, account, url, { ...wanted, ...changes }, forever);
}

test('downloadCertificate returns the chain in order, without the root and without duplicates', async (t) => {
  const parts = await registered(t);
  const [root, intermediate] = [chain.root.certificate, chain.intermediate.certificate];
  const texts = [
    pem(leaf, intermediate),
    pem(leaf, intermediate, root),
    pem(leaf, intermediate, intermediate, leaf, root, root),
    pem(leaf, root, intermediate),
    pem(leaf, intermediate).replaceAll('\n', '\r\n'),
    `\n${pem(leaf)}\n\n${pem(intermediate)}\n`,
  ];
  for (const text of texts) {
    assert.deepEqual(await download(parts, reply(text)), { leaf, chain: [intermediate] });
  }
  assert.deepEqual(await download(parts, reply(pem(leaf))), { leaf, chain: [] });
  assert.equal(parts.ca.requests.at(-1)?.headers.accept, mediaType);
});

test('a cross-signed twin of an intermediate is dropped from the chain', async (t) => {
  const twin = await issueIntermediate({
    ...dates,
    commonName: 'Test Intermediate',
    publicKey: publicKeyOf(chain.intermediate.privateKey),
    serial: randomBytes(16),
    issuer: other.root,
  });
  const found = await download(await registered(t), reply(pem(leaf, chain.intermediate.certificate, twin)));
  assert.equal(found.chain.length, 1);
});

test('a certificate for another key is rejected', async (t) => {
  const parts = await registered(t);
  const theirs = await makeLeaf(chain.intermediate);
  const text = pem(theirs.certificate, chain.intermediate.certificate);
  await assert.rejects(
    download(parts, reply(text)),
    isAcmeError('protocol', /for another key: CN=www\.example\.com$/),
  );
  // One bit off, it is no point on the curve, and no key to compare with.
  const publicKey = Buffer.from(wanted.publicKey);
  publicKey.writeUInt8((publicKey.at(-1) ?? 0) ^ 1, publicKey.length - 1);
  await assert.rejects(
    download(parts, reply(pem(leaf, chain.intermediate.certificate)), { publicKey }),
    isAcmeError('protocol', /for another key/),
  );
});

test('a chain with a certificate that issued none of the others is rejected', async (t) => {
  const parts = await registered(t);
  const texts = [
    pem(leaf, other.intermediate.certificate),
    pem(leaf, chain.root.certificate),
    pem(leaf, chain.intermediate.certificate, other.root.certificate),
    pem(leaf, chain.intermediate.certificate, other.leaf.certificate),
  ];
  for (const text of texts) {
    await assert.rejects(
      download(parts, reply(text)),
      isAcmeError('protocol', /do not form a chain: .* issued none of/),
    );
  }
});

test('a certificate without a requested name is rejected, and one with additional names is accepted', async (t) => {
  const parts = await registered(t);
  const text = pem(leaf, chain.intermediate.certificate);
  const names = dnsNames('www.example.com', 'mail.example.com');
  await assert.rejects(
    download(parts, reply(text), { identifiers: names }),
    isAcmeError('protocol', /for www\.example\.com, .*, without mail\.example\.com$/),
  );
  await download(parts, reply(text), { identifiers: dnsNames('WWW.example.com') });
});

test('a response that is not a PEM certificate chain is rejected', async (t) => {
  const parts = await registered(t);
  const whole = pem(leaf, chain.intermediate.certificate);
  const key = encodePem('PRIVATE KEY', chain.leaf.privateKey.expose());
  const cases: readonly [ScriptedReply, RegExp][] = [
    [reply(whole, 'application/x-pem-file'), /got application\/x-pem-file$/],
    [reply(whole, 'text/html'), /got text\/html$/],
    [{ body: whole }, /without a content type$/],
    [reply(''), /no certificate$/],
    [reply(`${whole}${key}`), /text that is not a certificate$/],
    [reply(`${whole}$(reboot)`), /text that is not a certificate/],
    [reply(`subject=CN = x\n${whole}`), /text that is not a certificate/],
    [reply(whole.slice(0, -20)), /text that is not a certificate/],
    [reply(leaf), /text that is not a certificate/],
    [
      reply(encodePem('CERTIFICATE', Buffer.from('no certificate'))),
      /a PEM block that is not a certificate$/,
    ],
    [reply(whole.replace('MII', 'M?I')), /a damaged one: .*base64/],
    [reply(pem(...Array.from({ length: 21 }, () => leaf))), /got 21 certificates$/],
    [reply('x'.repeat(2_000_000)), /larger than 1048576 bytes$/],
  ];
  for (const [answer, message] of cases) {
    await assert.rejects(download(parts, answer), isAcmeError('protocol', message));
  }
});

test('the preferred chain is selected by the name of its root, with the default chain as the fallback', async (t) => {
  const parts = await registered(t, { alternateRoots: ['Old Root', 'New Root'] });
  const { url, wanted: own } = await issuedOrder(parts.client, parts.account, 'example.com');
  const choose = async (preferredChain: string | undefined) => {
    const start = parts.ca.requests.length;
    const found = await downloadCertificate(
      parts.client,
      parts.account,
      url,
      { ...own, preferredChain },
      forever,
    );
    const [top = Buffer.alloc(0)] = found.chain;
    return [new X509Certificate(top).issuer, parts.ca.requests.length - start] as const;
  };
  assert.deepEqual(await choose(undefined), ['CN=Test Root', 1]);
  assert.deepEqual(await choose('Test Root'), ['CN=Test Root', 1]);
  assert.deepEqual(await choose('New Root'), ['CN=New Root', 3]);
  assert.deepEqual(await choose('Old Root'), ['CN=Old Root', 3]);
  assert.deepEqual(await choose('Test Intermediate'), ['CN=Test Root', 3]);
  assert.deepEqual(await choose('No Root'), ['CN=Test Root', 3]);
});

test('a failed alternate does not discard the certificate', async (t) => {
  const parts = await registered(t, { alternateRoots: ['Old Root', 'New Root'] });
  const { url, wanted: own } = await issuedOrder(parts.client, parts.account, 'example.com');
  const get = (preferredChain: string) =>
    downloadCertificate(parts.client, parts.account, url, { ...own, preferredChain }, forever);
  parts.ca.override('alternate', { status: 500 }, reply(pem(leaf)));
  assert.equal((await get('New Root')).chain.length, 1);
  parts.ca.override('alternate', { status: 500 });
  const {
    chain: [top = Buffer.alloc(0)],
  } = await get('New Root');
  assert.equal(new X509Certificate(top).issuer, 'CN=New Root');
});

test('a CA with a private root is trusted only if that root is configured', async (t) => {
  const ca = await scriptedAcme(t, { tls: true });
  assert.equal((await clientOf(ca).directory(forever)).newOrder, `${ca.origin}/new-order`);
  const untrusting = clientOf({ directoryUrl: ca.directoryUrl, ca: undefined });
  await assert.rejects(
    untrusting.directory(forever),
    isAcmeError('network', /certificate of .* is not trusted/),
  );
  const other = clientOf({ directoryUrl: ca.directoryUrl, ca: pem(chain.root.certificate) });
  await assert.rejects(other.directory(forever), isAcmeError('network', /is not trusted/));
});
