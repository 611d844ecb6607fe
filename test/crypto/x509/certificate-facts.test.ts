/** What is said about a certificate, checked against certificates that openssl made. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readPemBlocks } from '../../../src/crypto/pem.ts';
import {
  certificateFacts,
  isSignedBy,
  openCertificate,
  printable,
  titleOf,
  validityWarnings,
} from '../../../src/crypto/x509/certificate-facts.ts';
import { type IssueOptions, issue, makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const dir = mkdtempSync(join(tmpdir(), 'certificate-facts-'));
after(() => rmSync(dir, { recursive: true }));

const derOf = (pem: string) => readPemBlocks(pem)[0]?.der ?? Buffer.alloc(0);
const factsOf = (name: string, options: IssueOptions) =>
  certificateFacts(derOf(issue(dir, name, options).certificatePem));

test('a signature of a key that takes long to verify with does not count', needs('openssl'), () => {
  const signed = [0x1_0001, 0x1_0000_0001].map((exponent) => {
    const key = join(dir, `${exponent}.key`);
    const options = ['-pkeyopt', 'rsa_keygen_bits:2048', '-pkeyopt', `rsa_keygen_pubexp:${exponent}`];
    openssl(dir, 'genpkey', '-quiet', '-algorithm', 'RSA', ...options, '-out', key);
    const pem = openssl(dir, 'req', '-x509', '-new', '-key', key, '-subj', '/CN=Root').toString();
    const certificate = new X509Certificate(pem);
    assert.equal(certificate.verify(certificate.publicKey), true);
    return isSignedBy(certificate, certificate);
  });
  assert.deepEqual(signed, [true, false]);
});

test('the facts are those that openssl prints', needs('openssl'), () => {
  const { leaf, intermediates, root } = makeChain(dir);
  const facts = certificateFacts(derOf(leaf.certificatePem));
  const printed = (...what: string[]) =>
    execFileSync('openssl', ['x509', '-in', leaf.certificatePath, '-noout', ...what], { encoding: 'utf8' });
  assert.deepEqual(facts, {
    serial: printed('-serial').trim().replace('serial=', ''),
    issuer: printed('-issuer', '-nameopt', 'RFC2253').trim().replace('issuer=', ''),
    subject: 'CN=www.example.com',
    domains: ['www.example.com', 'example.com'],
    keyType: 'ec256',
    fingerprintSha256: printed('-fingerprint', '-sha256').trim().replace(/.*=|:/g, '').toLowerCase(),
    notBefore: Date.UTC(2025, 0, 1),
    notAfter: Date.UTC(2045, 0, 1),
    isAuthority: false,
    isSelfSigned: false,
  });
  const intermediate = certificateFacts(derOf(intermediates[0].certificatePem));
  assert.deepEqual([intermediate.isAuthority, intermediate.isSelfSigned], [true, false]);
  const top = certificateFacts(derOf(root.certificatePem));
  assert.deepEqual([top.isAuthority, top.isSelfSigned], [true, true]);
});

test(
  'distinguished names follow RFC 4514: last part first, special characters escaped',
  needs('openssl'),
  () => {
    const subject = '/C=US/O=Let\'s Encrypt, Inc.\\/X/OU=a=b/CN=#é"<x>;\\\\y\\+ ';
    const { subject: written } = factsOf('special', { subject });
    assert.equal(written, `CN=\\#é\\"\\<x\\>\\;\\\\y\\+\\ ,OU=a=b,O=Let's Encrypt\\, Inc./X,C=US`);
    assert.equal(
      factsOf('plain', { subject: "/C=US/O=Let's Encrypt/CN=R3" }).subject,
      "CN=R3,O=Let's Encrypt,C=US",
    );
    assert.equal(factsOf('multi', { subject: '/C=US/OU=x \\+ y+CN=b' }).subject, 'CN=b+OU=x \\+ y,C=US');
    assert.equal(factsOf('newline', { subject: '/CN=a\nCN=b' }).subject, 'CN=a\\0ACN=b');
  },
);

test(
  'an empty subject is an empty string, and titleOf falls back to a domain or the serial number',
  needs('openssl'),
  () => {
    const named = issue(dir, 'empty', { subject: '/', names: 'DNS:a.example' });
    const facts = certificateFacts(derOf(named.certificatePem));
    assert.deepEqual([facts.subject, facts.issuer], ['', '']);
    assert.equal(titleOf(new X509Certificate(named.certificatePem)), 'a.example');
    const bare = new X509Certificate(issue(dir, 'bare', { subject: '/' }).certificatePem);
    assert.equal(titleOf(bare), `the certificate with serial number ${bare.serialNumber}`);
  },
);

const alternatives: Record<string, { names?: string; subject?: string; domains: string[] }> = {
  'in order, normalized and once': {
    names: 'DNS:WWW.Example.com,IP:10.0.0.1,DNS:*.b.example,DNS:www.example.com,IP:2001:DB8:0::1,IP:::1',
    domains: ['www.example.com', '10.0.0.1', '*.b.example', '2001:db8::1', '::1'],
  },
  'without names of other types': {
    names: 'email:a@b.example,URI:https://c.example/,RID:1.2.3,otherName:1.2.3;UTF8:d.example,DNS:e.example',
    domains: ['e.example'],
  },
  'without unusable names': {
    names: 'DNS:a b.example,DNS:ok.example',
    domains: ['ok.example'],
  },
  'from the common name if there is no extension': {
    subject: '/O=x/CN=Old.Example',
    domains: ['old.example'],
  },
  'not from the common name if there is an extension': {
    subject: '/CN=old.example',
    names: 'email:a@b.example',
    domains: [],
  },
  'not from a common name that is not a domain': { subject: '/CN=My Printer', domains: [] },
};

for (const [index, [which, { domains, ...options }]] of Object.entries(alternatives).entries()) {
  test(`the domains are taken ${which}`, needs('openssl'), () => {
    assert.deepEqual(factsOf(`names-${index}`, { subject: '/CN=cn.example', ...options }).domains, domains);
  });
}

test('a DNS name that contains ", DNS:" or NUL is not listed as a domain', needs('openssl'), () => {
  const victim = derOf(
    issue(dir, 'comma', { names: 'DNS:aaaaaaaaaaaaaa.example,DNS:z.example' }).certificatePem,
  );
  const evil = Buffer.from(victim);
  evil.write('a, DNS:evil.ex', evil.indexOf('aaaaaaaaaaaaaa'));
  assert.deepEqual(certificateFacts(evil).domains, ['z.example']);
  const zero = Buffer.from(victim);
  zero.write('good.example\0e', zero.indexOf('aaaaaaaaaaaaaa'));
  assert.deepEqual(certificateFacts(zero).domains, ['z.example']);
});

for (const [begin, end] of [
  [Date.UTC(1950, 0, 1), Date.UTC(1969, 11, 31, 23, 59, 59)],
  [Date.UTC(2049, 11, 31, 23, 59, 59), Date.UTC(2050, 0, 1)],
  [Date.UTC(2020, 1, 29), Date.UTC(9999, 11, 31, 23, 59, 59)],
] as const) {
  test(`validity to ${new Date(end).getUTCFullYear()} is exact`, needs('openssl'), () => {
    const { notBefore, notAfter } = factsOf(`until-${end}`, { notBefore: begin, notAfter: end });
    assert.deepEqual([notBefore, notAfter], [begin, end]);
  });
}

test('keyType matches the public key of ec384, rsa2048 and ed25519 certificates', needs('openssl'), () => {
  for (const keyAlgorithm of ['ec384', 'rsa2048', 'ed25519'] as const) {
    assert.equal(factsOf(keyAlgorithm, { keyAlgorithm }).keyType, keyAlgorithm);
  }
});

test(
  'isSelfSigned is true for a self-signed non-CA certificate and false under an issuer of the same name',
  needs('openssl'),
  () => {
    const { isSelfSigned, isAuthority } = factsOf('own', {});
    assert.deepEqual([isSelfSigned, isAuthority], [true, false]);
    const issuer = issue(dir, 'same-name', { role: 'authority', subject: '/CN=same' });
    assert.equal(factsOf('same-name-leaf', { issuer, subject: '/CN=same' }).isSelfSigned, false);
  },
);

test(
  'bytes that are not a certificate and certificates with invalid times are not opened',
  needs('openssl'),
  () => {
    const der = derOf(issue(dir, 'times', {}).certificatePem);
    const begin = der.indexOf(Buffer.from([0x17, 0x0d])) + 2;
    const end = der.indexOf(Buffer.from([0x17, 0x0d]), begin) + 2;
    const broken = ['99xx', '9913', 'xxxx', '\0\0\0\0'].flatMap((digits) =>
      [begin, end].map((at) =>
        Buffer.concat([der.subarray(0, at), Buffer.from(digits), der.subarray(at + 4)]),
      ),
    );
    for (const bytes of [Buffer.alloc(0), Buffer.from('text'), der.subarray(0, -1), ...broken]) {
      assert.equal(openCertificate(bytes), undefined);
      assert.throws(() => certificateFacts(bytes), /the bytes are not an X\.509 certificate/);
    }
    assert.deepEqual(openCertificate(Buffer.concat([der, Buffer.from('more')]))?.raw, der);
  },
);

test('keyType is unknown for an unknown key algorithm', needs('openssl'), () => {
  const der = Buffer.from(
    derOf(issue(dir, 'unknown', { keyAlgorithm: 'ed25519', issuer: makeChain(dir).root }).certificatePem),
  );
  // The OID of Ed25519 becomes an unassigned one.
  der[der.lastIndexOf(Buffer.from([0x2b, 0x65, 0x70, 0x03])) + 2] = 0x10;
  assert.equal(certificateFacts(der).keyType, 'unknown');
});

test('validityWarnings warns only outside the validity period, to the millisecond', needs('openssl'), () => {
  const [notBefore, notAfter] = [Date.UTC(2030, 0, 1), Date.UTC(2031, 0, 1)];
  const certificate = new X509Certificate(issue(dir, 'short', { notBefore, notAfter }).certificatePem);
  assert.deepEqual(validityWarnings(certificate, notBefore), []);
  assert.deepEqual(validityWarnings(certificate, notAfter), []);
  assert.deepEqual(validityWarnings(certificate, notBefore - 1), [
    'CN=short is not valid before 2030-01-01T00:00:00Z.',
  ]);
  assert.deepEqual(validityWarnings(certificate, notAfter + 1), [
    'CN=short expired at 2031-01-01T00:00:00Z.',
  ]);
});

test('printable replaces control characters and shortens names to 201 characters', () => {
  assert.equal(printable('a\u001b[2J\u202eb'), 'a?[2J?b');
  assert.equal(printable('x'.repeat(1000)).length, 201);
});
