/** What a company returns for the CSR of a vault: first everything that is refused, then what is accepted. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { Problem } from '../../../src/base/problem.ts';
import { readReturnedAuthority } from '../../../src/crypto/bundles/returned-authority.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { authorityRequest } from '../../../src/crypto/x509/authority-request.ts';
import {
  type AuthorityTerms,
  companyIssuing,
  companyRoot,
  companySigns,
  defaultExtensions,
} from '../../harness/ca/company-ca.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const privateKey = await generatePrivateKey('ec384');
const publicKey = publicKeyOf(privateKey);
const csr = encodePem(
  'CERTIFICATE REQUEST',
  await authorityRequest({ commonName: 'Vault Intermediate', privateKey, pathLength: 0 }),
);

type Terms = { root?: AuthorityTerms; issuing?: AuthorityTerms; own?: AuthorityTerms };

/** Root, issuing CA and the certificate of the vault, as PEM. */
function chain(t: TestContext, terms: Terms = {}) {
  const dir = tempDir(t);
  const root = companyRoot(dir, 'root', terms.root);
  const issuing = companyIssuing(dir, root, 'issuing', terms.issuing);
  return { dir, root, issuing, own: companySigns(dir, issuing, csr, terms.own) };
}

function joined({ root, issuing, own }: ReturnType<typeof chain>): string {
  return own + issuing.pem + root.pem;
}

function read(text: string | Buffer, now = Date.now()) {
  return readReturnedAuthority(Buffer.from(text as string), publicKey, now);
}

function refusal(text: string | Buffer, now?: number): string {
  try {
    read(text, now);
  } catch (error) {
    assert(error instanceof Problem, String(error));
    assert.notEqual(error.hint, undefined);
    return `${error.status} ${error.message} ${error.hint}`;
  }
  return 'accepted';
}

const keyUsage = 'keyUsage=critical,keyCertSign,cRLSign';

const unfit: readonly (readonly [string, Terms, RegExp])[] = [
  [
    'a certificate that is not a CA certificate',
    { own: { extensions: ['basicConstraints=critical,CA:FALSE', keyUsage] } },
    /^400 CN=Vault Intermediate is not a CA certificate .* subordinate CA/,
  ],
  [
    'a certificate without basicConstraints',
    { own: { extensions: [keyUsage] } },
    /^400 CN=Vault Intermediate is not a CA certificate/,
  ],
  [
    'a certificate without keyCertSign',
    { own: { extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,cRLSign'] } },
    /^400 CN=Vault Intermediate must not sign certificates .*keyCertSign/,
  ],
  [
    'a certificate without cRLSign',
    { own: { extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'] } },
    /^400 CN=Vault Intermediate must not sign CRLs .*cRLSign/,
  ],
  [
    'an issuing CA with path length 0',
    { issuing: { extensions: ['basicConstraints=critical,CA:TRUE,pathlen:0', keyUsage] } },
    /^400 CN=Company issuing permits no CA below it \(pathlen:0\), and the chain has 1\. Ask/,
  ],
  [
    'a root with too short a path length',
    { root: { extensions: ['basicConstraints=critical,CA:TRUE,pathlen:1', keyUsage] } },
    /^400 CN=Company root permits at most 1 below it \(pathlen:1\), and the chain has 2\./,
  ],
  [
    'an issuing certificate that is not a CA certificate',
    { issuing: { extensions: ['basicConstraints=critical,CA:FALSE'] } },
    /^400 CN=Company issuing is not a CA certificate/,
  ],
  [
    'a signature with SHA-1',
    { own: { digest: 'sha1' } },
    /^400 Certificate 1 in the file is signed with SHA-1, which is broken/,
  ],
  [
    'an RSA key of 1024 bits',
    { issuing: { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'] } },
    /^400 Certificate 2 in the file has an RSA key of 1024 bits; use RSA with 2048/,
  ],
  [
    'a certificate that is valid for less than a day',
    { own: { days: 0 } },
    /^400 CN=Vault Intermediate (expired at|expires at .*in less than a day)/,
  ],
  [
    'a chain whose issuing CA expires within a day',
    { issuing: { days: 1 } },
    /^400 CN=Company issuing expires at .*, in less than a day; what the vault issues would expire with it/,
  ],
  [
    'an unknown critical extension',
    { own: { extensions: [...defaultExtensions, '1.2.3.4=critical,ASN1:NULL'] } },
    /^400 Certificate 1 in the file has the critical extension 1\.2\.3\.4, which is not supported/,
  ],
  [
    'name constraints on subjects',
    {
      own: {
        extensions: [
          ...defaultExtensions,
          'nameConstraints=critical,permitted;dirName:corp',
          '[corp]',
          'O=Corp',
        ],
      },
    },
    /^400 Certificate 1 in the file confines the subjects of certificates .*directoryName/,
  ],
  [
    'required policies',
    { issuing: { extensions: [...defaultExtensions, 'policyConstraints=requireExplicitPolicy:0'] } },
    /^400 Certificate 2 in the file requires certificate policies/,
  ],
];

for (const [title, terms, message] of unfit) {
  test(`rejects ${title}`, needs('openssl'), (t) => {
    assert.match(refusal(joined(chain(t, terms))), message);
  });
}

test(
  'rejects empty, DER, PKCS#7, CSR, key, damaged and oversized files with a hint',
  needs('openssl'),
  (t) => {
    const { own, issuing, root } = chain(t);
    const full = own + issuing.pem + root.pem;
    const key = '-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n';
    const der = Buffer.from((own.split('-----')[2] ?? '').replace(/\s/g, ''), 'base64');
    const cases: readonly (readonly [string | Buffer, RegExp])[] = [
      ['', /^400 No certificate found in the file\. Send the certificate for the CSR/],
      ['\0\xff'.repeat(1000), /^400 No certificate found/],
      [csr, /^400 The file contains a CSR, not the certificate/],
      [der, /^400 The file is DER, not PEM\. Convert it with `openssl x509 -inform der/],
      [encodePem('PKCS7', der), /^400 The file contains PKCS#7.*openssl pkcs7 -print_certs/],
      [full + key, /^400 The file contains a private key, which the vault must not get/],
      [`${full}${'#'.repeat(65_536)}`, /^413 The file is larger than 64 KiB/],
      [full.slice(0, -30), /^400 The file is damaged: the CERTIFICATE block at line \d+ has no END line/],
      [own.repeat(11), /^400 The file has 11 certificates; at most 10 are read/],
      [encodePem('CERTIFICATE', der.subarray(0, -1)), /^400 Certificate 1 in the file is damaged: its DER/],
      [encodePem('CERTIFICATE', Buffer.alloc(5000)), /^400 Certificate 1 in the file is damaged: its DER/],
    ];
    for (const [text, message] of cases) assert.match(refusal(text), message);
  },
);

test('rejects a chain without a certificate for the key of the CSR', needs('openssl'), (t) => {
  const { issuing, root } = chain(t);
  assert.match(
    refusal(issuing.pem + root.pem),
    /^400 None of the certificates in the file has the key of the request: CN=Company issuing; CN=Company root\. .*vault ca csr/,
  );
});

test('rejects an incomplete chain and reports the missing issuer', needs('openssl'), (t) => {
  const { own, issuing, root } = chain(t);
  const missing = /^400 The chain is incomplete: (.*) was issued by (.*), which is not in the file\. Add/;
  assert.deepEqual(missing.exec(refusal(own))?.slice(1), ['CN=Vault Intermediate', 'CN=Company issuing']);
  assert.deepEqual(missing.exec(refusal(own + root.pem))?.slice(1), [
    'CN=Vault Intermediate',
    'CN=Company issuing',
  ]);
  assert.deepEqual(missing.exec(refusal(own + issuing.pem))?.slice(1), [
    'CN=Company issuing',
    'CN=Company root',
  ]);
});

test('rejects a chain whose issuer has the right name but another key', needs('openssl'), (t) => {
  const { own } = chain(t);
  const { issuing, root } = chain(t);
  assert.match(
    refusal(own + issuing.pem + root.pem),
    /^400 The signature of CN=Vault Intermediate was not made by the key of CN=Company issuing in the file/,
  );
});

test('rejects a certificate whose signature was changed', needs('openssl'), (t) => {
  const { own, issuing, root } = chain(t);
  const der = Buffer.from((own.split('-----')[2] ?? '').replace(/\s/g, ''), 'base64');
  der.writeUInt8((der.at(-1) ?? 0) ^ 1, der.length - 1);
  assert.match(refusal(encodePem('CERTIFICATE', der) + issuing.pem + root.pem), /^400 The signature of/);
});

test('rejects a certificate that has expired or is not valid yet', needs('openssl'), (t) => {
  const full = joined(chain(t, { own: { days: 30 } }));
  assert.match(refusal(full, Date.now() + 31 * day), /^400 CN=Vault Intermediate expired at 20/);
  assert.match(refusal(full, Date.now() - day), /^400 CN=Vault Intermediate is not valid before 20/);
});

test(
  'accepts the chain in any order, with repeated and unrelated certificates and text between',
  needs('openssl'),
  (t) => {
    const { own, issuing, root } = chain(t, { issuing: { days: 900 } });
    const other = companyRoot(tempDir(t), 'other').pem;
    for (const parts of [
      [own, issuing.pem, root.pem],
      [root.pem, issuing.pem, own],
      [other, issuing.pem, own, own, 'subject=CN = x\n', root.pem],
    ]) {
      const { authority, upper, root: top, notAfter } = read(parts.join('').replaceAll('\n', '\r\n'));
      assert.match(authority.x509.subject, /Vault Intermediate/);
      assert.deepEqual(
        upper.map(({ x509 }) => x509.subject),
        ['CN=Company issuing'],
      );
      assert.equal(top.x509.subject, 'CN=Company root');
      assert.equal(notAfter, upper[0]?.x509.validToDate.getTime());
    }
  },
);

test('accepts a certificate that the root signed directly', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const root = companyRoot(dir, 'root', { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'] });
  const { upper } = read(companySigns(dir, root, csr) + root.pem);
  assert.deepEqual(upper, []);
});

test('skips a certificate with the name of the root but another key', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const root = companyRoot(dir, 'root', { days: 30 });
  const own = companySigns(dir, root, csr, { days: 20 });
  const later = companyIssuing(dir, root, 'later', { days: 4000 });
  const cross = companyIssuing(dir, later, 'cross', { subject: '/CN=Company root' });
  const { root: top } = read(cross.pem + later.pem + own + root.pem);
  assert.equal(top.x509.subject, 'CN=Company root');
});

test('uses the renewed root with the same key after the old one has expired', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const root = companyRoot(dir, 'root', { days: 30 });
  const own = companySigns(dir, root, csr);
  const terms = ['-signkey', 'root.key', '-days', '4000', '-extfile', 'root.ext'];
  const renewed = openssl(dir, 'x509', '-req', '-in', 'root.csr', ...terms).toString();
  for (const file of [own + root.pem + renewed, renewed + root.pem + own]) {
    const { root: top } = read(file, Date.now() + 60 * day);
    assert(top.x509.raw.equals(new X509Certificate(renewed).raw));
  }
  assert.match(refusal(own + root.pem, Date.now() + 60 * day), /^400 CN=Company root expired at 20/);
});

test(
  'throws only Problem if a bit of the certificates is flipped, and rejects more than 400 of the changes',
  needs('openssl'),
  (t) => {
    const { own, issuing, root } = chain(t, {
      issuing: { extensions: [...defaultExtensions, 'nameConstraints=critical,permitted;DNS:corp.example'] },
    });
    let refused = 0;
    for (const [at, pem] of [own, issuing.pem, root.pem].entries()) {
      const der = Buffer.from((pem.split('-----')[2] ?? '').replace(/\s/g, ''), 'base64');
      for (let index = 0; index < der.length; index += 3) {
        const changed = Buffer.from(der);
        changed.writeUInt8((der[index] ?? 0) ^ (1 << (index % 8)), index);
        const parts = [own, issuing.pem, root.pem].with(at, encodePem('CERTIFICATE', changed));
        if (refusal(parts.join('')) !== 'accepted') refused += 1;
      }
    }
    // Each byte is signed or is the signature.
    assert(refused > 400, String(refused));
    assert.equal(refusal(own + issuing.pem + root.pem), 'accepted');
  },
);
