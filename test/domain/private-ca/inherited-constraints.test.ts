/**
 * The constraints of a company's CA: what they forbid is refused, and what the vault issues below them verifies with
 * OpenSSL.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { Problem } from '../../../src/base/problem.ts';
import { DerError } from '../../../src/crypto/der-reader.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { authorityRequest } from '../../../src/crypto/x509/authority-request.ts';
import { constrainedNames } from '../../../src/crypto/x509/constrained-names.ts';
import { issueLeaf } from '../../../src/crypto/x509/leaf-certificate.ts';
import { forbiddenBy, refuseForbiddenBy } from '../../../src/domain/private-ca/inherited-constraints.ts';
import type { CertifiedNames } from '../../../src/domain/private-ca/permitted-names.ts';
import { companyRoot, companySigns, defaultExtensions } from '../../harness/ca/company-ca.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const privateKey = await generatePrivateKey('ec384');
const request = await authorityRequest({ commonName: 'Vault Intermediate', privateKey, pathLength: 0 });
const csr = encodePem('CERTIFICATE REQUEST', request);
const leafKey = publicKeyOf(await generatePrivateKey('ec256'));

/** `stricter`: refused although OpenSSL accepts it, because other verifiers do not. */
type Case = {
  readonly extension: string;
  readonly permitted: readonly CertifiedNames[];
  readonly refused: readonly CertifiedNames[];
  readonly stricter?: readonly CertifiedNames[];
};

const dns = (...domains: readonly string[]): CertifiedNames => ({ domains });
const mail = (...emails: readonly string[]): CertifiedNames => ({ emails });
const uri = (...uris: readonly string[]): CertifiedNames => ({ uris });

const cases: Readonly<Record<string, Case>> = {
  'a permitted domain': {
    extension: 'nameConstraints=critical,permitted;DNS:Corp.Example',
    permitted: [
      dns('corp.example'),
      dns('a.b.corp.example', '*.corp.example'),
      dns('10.0.0.1'),
      mail('a@other.example'),
      uri('spiffe://other.example/x'),
      { subject: ['CN=alice'], usage: 'client' },
    ],
    refused: [
      dns('other.example'),
      dns('corp.example', 'other.example'),
      dns('notcorp.example'),
      dns('example'),
      { subject: ['CN=www.other.example'] },
      { subject: ['CN=10.0.0.1'] },
    ],
  },
  'hosts below a permitted domain': {
    extension: 'nameConstraints=critical,permitted;DNS:.corp.example',
    permitted: [dns('a.corp.example'), dns('*.corp.example')],
    refused: [dns('corp.example'), dns('other.example')],
  },
  'an excluded domain': {
    extension: 'nameConstraints=critical,excluded;DNS:secret.corp.example',
    permitted: [dns('corp.example'), dns('topsecret.corp.example'), dns('192.0.2.1')],
    refused: [dns('secret.corp.example'), dns('a.secret.corp.example'), dns('*.secret.corp.example')],
    stricter: [dns('*.corp.example')],
  },
  'a permitted network': {
    extension: 'nameConstraints=critical,permitted;IP:10.0.0.0/255.0.0.0,permitted;IP:2001:db8::/ffff:ffff::',
    permitted: [dns('10.255.0.1'), dns('2001:db8::1'), dns('www.example.com')],
    refused: [dns('11.0.0.1'), dns('2001:db9::1'), dns('10.0.0.1', '192.0.2.1')],
    stricter: [],
  },
  'an excluded network': {
    extension: 'nameConstraints=critical,excluded;IP:0.0.0.0/0.0.0.0',
    permitted: [dns('2001:db8::1'), dns('www.example.com')],
    refused: [dns('10.0.0.1')],
    stricter: [dns('::ffff:10.0.0.1')],
  },
  'permitted hosts of mailboxes': {
    extension: 'nameConstraints=critical,permitted;email:corp.example,permitted;email:.lab.example',
    permitted: [mail('a@corp.example'), mail('A@x.lab.example'), dns('other.example')],
    refused: [mail('a@other.example'), mail('a@x.corp.example'), mail('a@lab.example')],
  },
  'a permitted mailbox': {
    extension: 'nameConstraints=critical,permitted;email:Alice@corp.example',
    permitted: [mail('Alice@corp.example')],
    refused: [mail('bob@corp.example'), mail('alice@corp.example')],
  },
  'an excluded mailbox and an excluded host': {
    extension: 'nameConstraints=critical,excluded;email:root@corp.example,excluded;email:lab.example',
    permitted: [mail('a@corp.example')],
    refused: [mail('root@corp.example'), mail('a@lab.example')],
    stricter: [mail('ROOT@corp.example'), mail('a@x.lab.example')],
  },
  'permitted hosts of URIs': {
    extension: 'nameConstraints=critical,permitted;URI:corp.example,permitted;URI:.lab.example',
    permitted: [
      uri('spiffe://corp.example/web'),
      uri('https://a.lab.example:8443/x?y'),
      dns('other.example'),
    ],
    refused: [uri('spiffe://other.example/web'), uri('https://lab.example/'), uri('urn:example:1')],
  },
  'an excluded host of URIs': {
    extension: 'nameConstraints=critical,excluded;URI:corp.example',
    permitted: [uri('spiffe://other.example/web')],
    refused: [uri('https://corp.example/')],
    stricter: [uri('https://x.corp.example/'), uri('https://10.0.0.1/')],
  },
  'kinds of names that the vault does not issue': {
    extension: 'nameConstraints=critical,permitted;otherName:1.3.6.1.4.1.311.20.2.3;UTF8:@corp.example',
    permitted: [dns('any.example'), { subject: ['CN=alice'] }],
    refused: [],
  },
  'no constraints': {
    extension: 'certificatePolicies=2.23.140.1.2.1',
    permitted: [
      dns('any.example', '*.any.example', '10.0.0.1', '2001:db8::1'),
      { subject: ['CN=x.example'] },
    ],
    refused: [],
  },
};

for (const [title, { extension, permitted, refused, stricter = [] }] of Object.entries(cases)) {
  test(`with ${title}, forbiddenBy matches OpenSSL or is stricter`, needs('openssl'), async (t) => {
    const dir = tempDir(t);
    const root = companyRoot(dir);
    const pem = companySigns(dir, root, csr, { extensions: [...defaultExtensions, extension] });
    const certificate = new X509Certificate(pem).raw;
    const verifies = async (names: CertifiedNames) => {
      await issued(dir, certificate, names);
      try {
        openssl(dir, 'verify', '-x509_strict', '-CAfile', 'root.crt', '-untrusted', 'vault.crt', 'leaf.pem');
        return true;
      } catch {
        return false;
      }
    };
    for (const names of permitted) {
      assert.equal(forbiddenBy([certificate], names), undefined, JSON.stringify(names));
      assert(await verifies(names), JSON.stringify(names));
    }
    for (const names of refused) {
      assert.equal(forbiddenBy([certificate], names)?.by, 'CN=Vault Intermediate', JSON.stringify(names));
      assert.equal(await verifies(names), false, JSON.stringify(names));
    }
    for (const names of stricter) {
      assert.notEqual(forbiddenBy([certificate], names), undefined, JSON.stringify(names));
    }
  });
}

test(
  'the error specifies the issuer, the forbidden name and the constraining certificate',
  needs('openssl'),
  (t) => {
    const dir = tempDir(t);
    const root = companyRoot(dir, 'root', {
      subject: '/O=Example Corp/CN=Root',
      extensions: [...defaultExtensions, 'nameConstraints=critical,permitted;DNS:corp.example'],
    });
    const own = companySigns(dir, root, csr);
    const chain = [own, root.pem].map((pem) => new X509Certificate(pem).raw);
    assert.throws(
      () => refuseForbiddenBy('local-ca', chain, dns('www.corp.example', 'other.example')),
      (error) => {
        assert(error instanceof Problem);
        assert.equal(error.code, 'invalid_request');
        assert.match(
          error.message,
          /^Issuer local-ca cannot issue for other\.example: the certificate CN=Root,O=Example Corp above it does not permit it\.$/,
        );
        assert.equal(error.errors[0]?.path, 'domains');
        return true;
      },
    );
  },
);

test('a CA with extendedKeyUsage=serverAuth rejects client certificates', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const root = companyRoot(dir);
  const own = companySigns(dir, root, csr, {
    extensions: [...defaultExtensions, 'extendedKeyUsage=serverAuth'],
  });
  const chain = [new X509Certificate(own).raw];
  assert.equal(forbiddenBy(chain, { domains: ['a.example'], usage: 'server' }), undefined);
  for (const usage of ['client', 'both'] as const) {
    const found = forbiddenBy(chain, { domains: ['a.example'], usage });
    assert.deepEqual(found, { path: 'usage', name: 'clients', by: 'CN=Vault Intermediate' });
  }
});

test('malformed name constraints are rejected', () => {
  const sequence = (...parts: readonly Buffer[]) => wrapped(0x30, ...parts);
  const subtree = (tag: number, content: Buffer, ...more: readonly Buffer[]) =>
    sequence(wrapped(0xa0, sequence(wrapped(tag, content), ...more)));
  const name = Buffer.from('corp.example');
  const damaged: readonly (readonly [Buffer, RegExp])[] = [
    [Buffer.alloc(0), /ends too early/],
    [subtree(0x82, Buffer.from('corp example')), /is no domain/],
    [subtree(0x82, Buffer.from('*.corp.example')), /is no domain/],
    [subtree(0x82, Buffer.from('corp.example.')), /is no domain/],
    [subtree(0x82, Buffer.from('käse.example', 'utf8')), /is no domain/],
    [subtree(0x81, Buffer.from('a@b@corp.example')), /is no mailbox or host/],
    [subtree(0x87, Buffer.alloc(4)), /network of another length/],
    [subtree(0x82, name, wrapped(0x80, Buffer.of(1))), /a minimum or a maximum/],
    [subtree(0x82, name, wrapped(0x81, Buffer.of(1))), /a minimum or a maximum/],
    [Buffer.concat([subtree(0x82, name), Buffer.of(0)]), /after its end/],
    [
      sequence(wrapped(0xa0, ...Array<Buffer>(501).fill(sequence(wrapped(0x82, name))))),
      /more than 500 name constraints/,
    ],
  ];
  for (const [bytes, message] of damaged) assert.throws(() => constrainedNames(bytes), message);
  assert.throws(() => constrainedNames(Buffer.of(0x30, 0x80)), DerError);
});

function wrapped(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.of(tag, ...length), content]);
}

/** Writes a leaf with these names. */
async function issued(dir: string, certificate: Buffer, names: CertifiedNames): Promise<void> {
  const { domains = [], ...rest } = names;
  const leaf = await issueLeaf({
    ...rest,
    identifiers: domains.map(identifier),
    publicKey: leafKey,
    serial: Buffer.alloc(16, 7),
    notBefore: Date.now() - day,
    notAfter: Date.now() + day,
    issuer: { certificate, privateKey },
  });
  writeFileSync(join(dir, 'leaf.pem'), encodePem('CERTIFICATE', leaf));
}
