/** Our leaf certificates are those of the X.509 library, byte for byte: what programs accepted they accept still. */
import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { type KeyType, keyTypes } from '../../../src/base/key-type.ts';
import { usages } from '../../../src/base/leaf-names.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { issueLeaf, type LeafRequest } from '../../../src/crypto/x509/leaf-certificate.ts';
import { SigningAuthority } from '../../../src/crypto/x509/signing-authority.ts';
import type { X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import { dates, identifier, makeChain } from '../../harness/ca/private-chain.ts';
import { libraryLeaf, signedPart } from './library-leaf.ts';

const longName = `${'a'.repeat(53)}.example.com`;
const longest = `${'a.'.repeat(121)}example.com`;
const addresses = [
  '192.0.2.1',
  '::',
  '::1',
  '2001:db8::',
  '1:2:3:4:5:6:7:8',
  '::ffff:192.0.2.1',
  'fe80::1:0:0:1',
];

type Names = Pick<LeafRequest, 'identifiers' | 'uris' | 'emails' | 'subject'>;

const names: readonly Names[] = [
  { identifiers: ['www.example.com'] },
  { identifiers: ['*.example.com', 'www.example.com'] },
  { identifiers: ['192.0.2.1'] },
  { identifiers: ['192.0.2.1', 'www.example.com'] },
  { identifiers: addresses },
  { identifiers: ['bücher.example'] },
  { identifiers: [longName] },
  { identifiers: [longName.slice(1), longName] },
  { identifiers: [longest] },
  { identifiers: Array.from({ length: 100 }, (_, number) => `host-${number}.example.com`) },
  { identifiers: [], uris: ['spiffe://example.org/web'] },
  { identifiers: [], emails: ['alice@example.com'] },
  { identifiers: [], subject: ['CN=alice'] },
  { identifiers: [], subject: ['O=Bücher & Söhne', 'CN=日本', 'C=de', 'OU=a+b=c, d', 'ST=x', 'L=y'] },
  { identifiers: ['www.example.com'], subject: ['O=Example'] },
  { identifiers: ['192.0.2.1'], subject: ['CN=alice'] },
  {
    identifiers: ['www.example.com', '2001:db8::1'],
    uris: ['spiffe://example.org/web', `https://example.com/${'a'.repeat(300)}`],
    emails: ['alice@example.com', 'bob@example.org'],
    subject: ['C=CH', 'CN=www.example.org'],
  },
].map(({ identifiers, ...rest }) => ({ ...rest, identifiers: identifiers.map(identifier) }));

const urls = [undefined, 'http://vault.example.com/client/crls/2', `http://example.com/${'c'.repeat(200)}`];

const times = [
  { notBefore: dates.notBefore, notAfter: dates.notBefore + 999 },
  { notBefore: Date.parse('2049-12-31T23:59:59.999Z'), notAfter: Date.parse('2050-01-01T00:00:00.000Z') },
];

const serials = ['00', '7f', '80', 'ff'].map((first) => Buffer.from(first.padEnd(32, first), 'hex'));

const keys = new Map(
  await Promise.all(
    keyTypes.map(async (type) => [type, publicKeyOf(await generatePrivateKey(type))] as const),
  ),
);

async function authorityOf(keyType: KeyType): Promise<X509Issuer> {
  const chain = await makeChain({ keyType, leafKeyType: 'ec256', notAfter: Date.UTC(2060, 0, 1) });
  return chain.intermediate;
}

/** Both of the same request; for keys whose signatures are always the same, with the signature. */
async function assertSame(request: Omit<LeafRequest, 'issuer'>, issuer: X509Issuer, title: string) {
  const authority = new SigningAuthority(issuer);
  const [ours, theirs] = [
    await issueLeaf({ ...request, issuer: authority }),
    await libraryLeaf({ ...request, issuer }),
  ];
  assert.equal(signedPart(ours), signedPart(theirs), title);
  const { publicKey } = new X509Certificate(issuer.certificate);
  assert(new X509Certificate(ours).verify(publicKey), title);
  if (publicKey.asymmetricKeyType !== 'ec') assert(ours.equals(theirs), title);
}

test('a leaf has the signed bytes of the X.509 library for all names, usages and CRL URLs', async () => {
  const issuer = await authorityOf('ec256');
  const publicKey = keys.get('ec256') as Buffer;
  for (const [at, name] of names.entries())
    for (const usage of [undefined, ...usages])
      for (const crlUrl of urls) {
        const request = { ...name, ...dates, usage, crlUrl, publicKey, serial: randomBytes(16) };
        await assertSame(request, issuer, `${at} ${usage} ${crlUrl}`);
      }
});

test('a leaf has the signed bytes of the X.509 library for all leaf and CA key types', async () => {
  for (const authorityType of ['ec256', 'ec384', 'rsa2048', 'ed25519'] as const) {
    const issuer = await authorityOf(authorityType);
    for (const [type, publicKey] of keys)
      for (const usage of usages) {
        const request = { identifiers: [identifier('www.example.com')], ...dates, usage, publicKey };
        await assertSame(
          { ...request, serial: randomBytes(16) },
          issuer,
          `${type} by ${authorityType}, ${usage}`,
        );
      }
  }
});

test('a leaf has the signed bytes of the X.509 library for all serial numbers and times', async () => {
  const issuer = await authorityOf('ed25519');
  const publicKey = keys.get('ec384') as Buffer;
  for (const serial of serials)
    for (const time of times) {
      const request = { identifiers: [identifier('www.example.com')], ...time, publicKey, serial };
      await assertSame(request, issuer, `${serial.toString('hex')} ${time.notAfter}`);
    }
});

test('subjectAltName is critical if the subject is empty, and a leaf without any name is rejected', async () => {
  const issuer = await authorityOf('ec256');
  const request = {
    ...dates,
    issuer,
    publicKey: keys.get('ec256') as Buffer,
    serial: randomBytes(16),
    subject: [],
  };
  const leaf = await issueLeaf({ ...request, identifiers: [identifier('192.0.2.1')] });
  assert.equal(new X509Certificate(leaf).subject, undefined);
  assert(leaf.includes(Buffer.from('0603551d110101ff', 'hex')));
  await assert.rejects(issueLeaf({ ...request, identifiers: [] }), /a leaf needs a name/);
});
