/** How clients judge what a server presents: a table of chains, each with what is trusted. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { before, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import {
  Anchors,
  judgeServed,
  publicAnchors,
  type ServedChain,
} from '../../../src/crypto/x509/served-chain.ts';
import { issueIntermediate, type X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import { issue } from '../../harness/ca/openssl-chain.ts';
import { dates, makeChain, makeLeaf, type PrivateChain } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const now = Date.UTC(2026, 10, 21, 12);
const begin = now - 10 * day;
const opened = ({ certificate }: Pick<X509Issuer, 'certificate'>) => new X509Certificate(certificate);

let chain: PrivateChain;
let other: PrivateChain;
before(async () => {
  [chain, other] = await Promise.all([makeChain(), makeChain()]);
});

type Case = {
  readonly why: string;
  /** Of the chain, and in the order of the server. */
  readonly served: () => Promise<readonly X509Issuer[]> | readonly X509Issuer[];
  readonly trusted?: () => readonly X509Issuer[];
  readonly name?: string;
  readonly known?: () => readonly X509Issuer[];
  readonly isComplete: boolean;
  readonly problem: string | undefined;
};

const root = () => [chain.root];
const usual = () => [chain.leaf, chain.intermediate];
const missing =
  'incomplete chain or unknown CA: the server does not send the certificate of CN=Test Intermediate';

const lower = async (terms: { notBefore?: number; notAfter?: number }) => {
  const privateKey = await generatePrivateKey('ec256');
  const certificate = await issueIntermediate({
    ...{ ...dates, ...terms, commonName: 'Other Intermediate', serial: Buffer.from([7]) },
    ...{ publicKey: publicKeyOf(privateKey), issuer: chain.root },
  });
  const intermediate = { certificate, privateKey };
  return [await makeLeaf(intermediate, terms), intermediate];
};

const cases: readonly Case[] = [
  {
    why: 'leaf and intermediate lead to a trusted root',
    served: usual,
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the server sends the trusted root, too',
    served: () => [chain.leaf, chain.intermediate, chain.root],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the order is wrong and other certificates are between',
    served: () => [chain.leaf, other.leaf, chain.root, other.intermediate, chain.intermediate],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'only the intermediate is trusted and not sent',
    served: () => [chain.leaf],
    trusted: () => [chain.intermediate],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the leaf itself is trusted',
    served: () => [chain.leaf],
    trusted: () => [chain.leaf],
    isComplete: true,
    problem: undefined,
  },
  { why: 'the intermediate is missing', served: () => [chain.leaf], isComplete: false, problem: missing },
  {
    why: 'an intermediate of the same name did not sign it',
    served: () => [chain.leaf, other.intermediate],
    isComplete: false,
    problem: missing,
  },
  {
    why: 'the root has the right name and another key',
    served: usual,
    trusted: () => [other.root],
    isComplete: false,
    problem: 'incomplete chain or unknown CA: the server does not send the certificate of CN=Test Root',
  },
  {
    why: 'the root that is sent is not trusted',
    served: () => [chain.leaf, chain.intermediate, chain.root],
    trusted: () => [],
    isComplete: true,
    problem: 'issued by an unknown CA: CN=Test Root',
  },
  {
    why: 'nothing is trusted',
    served: usual,
    trusted: () => [],
    isComplete: false,
    problem: 'incomplete chain or unknown CA: the server does not send the certificate of CN=Test Root',
  },
  {
    why: 'the vault has this chain of an unknown root',
    served: usual,
    trusted: () => [],
    known: () => [chain.intermediate],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the vault has this chain with its root, which servers do not send',
    served: usual,
    trusted: () => [],
    known: () => [chain.intermediate, chain.root],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the vault has an intermediate that the server does not send',
    served: () => [chain.leaf],
    trusted: () => [],
    known: () => [chain.intermediate],
    isComplete: false,
    problem: missing,
  },
  {
    why: 'the name is not in the certificate',
    served: usual,
    name: 'mail.example.com',
    isComplete: true,
    problem: 'the certificate does not cover mail.example.com',
  },
  {
    why: 'a wildcard covers the name',
    served: usual,
    name: 'a.example.org',
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the name is two labels below a wildcard',
    served: usual,
    name: 'a.b.example.org',
    isComplete: true,
    problem: 'the certificate does not cover a.b.example.org',
  },
  {
    why: 'the address is in the certificate',
    served: usual,
    name: '127.0.0.1',
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the IPv6 address is in it',
    served: usual,
    name: '2001:db8::1',
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the address is not in it',
    served: usual,
    name: '127.0.0.2',
    isComplete: true,
    problem: 'the certificate does not cover 127.0.0.2',
  },
  {
    why: 'the name is wrong and the CA is unknown',
    served: usual,
    trusted: () => [],
    name: 'mail.example.com',
    isComplete: false,
    problem: 'the certificate does not cover mail.example.com',
  },
  {
    why: 'it is not valid yet',
    served: async () => [await makeLeaf(chain.intermediate, { notBefore: now + day }), chain.intermediate],
    isComplete: true,
    problem: 'the certificate is not valid before 2026-11-22T12:00:00Z',
  },
  {
    why: 'only the leaf has expired, which the state says',
    served: async () => [
      await makeLeaf(chain.intermediate, { notBefore: begin, notAfter: now - day }),
      chain.intermediate,
    ],
    isComplete: true,
    problem: undefined,
  },
  {
    why: 'the intermediate has expired',
    served: () => lower({ notBefore: begin, notAfter: now - day }),
    isComplete: true,
    problem: 'CN=Other Intermediate expired at 2026-11-20T12:00:00Z',
  },
  {
    why: 'the intermediate is not valid yet',
    served: () => lower({ notBefore: now + day }),
    isComplete: true,
    problem: 'CN=Other Intermediate is not valid yet',
  },
  {
    why: 'it is only for clients',
    served: async () => [await makeLeaf(chain.intermediate, { usage: 'client' }), chain.intermediate],
    isComplete: true,
    problem: 'the certificate is not for servers',
  },
];

for (const { why, served, trusted = root, name = 'www.example.com', known, isComplete, problem } of cases) {
  test(`a client ${problem === undefined ? 'accepts' : 'rejects'} a certificate if ${why}`, async () => {
    const [leaf = assert.fail(), ...others] = (await served()).map(opened);
    const verdict = judgeServed({
      ...{ certificates: [leaf, ...others], name, now },
      trusted: [new Anchors([]), new Anchors(trusted().map(opened))],
      known: known?.().map(opened),
    });
    assert.deepEqual(verdict, { isComplete, problem });
  });
}

const judged = (certificates: ServedChain['certificates'], trusted: readonly Anchors[] = []) =>
  judgeServed({ certificates, trusted, name: 'www.example.com', known: undefined, now });

test('a client rejects a self-signed certificate and accepts it if it is trusted', needs('openssl'), (t) => {
  const { certificatePem } = issue(tempDir(t), 'self', { names: 'DNS:www.example.com' });
  const leaf = new X509Certificate(certificatePem);
  assert.deepEqual(judged([leaf]), { isComplete: true, problem: 'the certificate is self-signed' });
  assert.deepEqual(judged([leaf], [new Anchors([leaf])]), { isComplete: true, problem: undefined });
});

test(
  'a client rejects a certificate that one without the right to issue has signed',
  needs('openssl'),
  (t) => {
    const dir = tempDir(t);
    const top = issue(dir, 'top', { role: 'authority' });
    const wrong = issue(dir, 'wrong', { issuer: top, names: 'DNS:www.example.com' });
    const leaf = issue(dir, 'leaf', { issuer: wrong, names: 'DNS:www.example.com' });
    const [first, second, third] = [leaf, wrong, top].map((one) => new X509Certificate(one.certificatePem));
    assert(first && second && third);
    const { problem } = judged([first, second], [new Anchors([third])]);
    assert.match(
      problem ?? '',
      /^(CN=wrong is in the chain but not a CA|incomplete chain or unknown CA: .*CN=wrong)$/,
    );
  },
);

test(
  'a certificate without a subjectAltName covers no name, not even its common name',
  needs('openssl'),
  (t) => {
    const leaf = new X509Certificate(issue(tempDir(t), 'www.example.com').certificatePem);
    assert.equal(
      judged([leaf], [new Anchors([leaf])]).problem,
      'the certificate does not cover www.example.com',
    );
  },
);

test('an expired root is not an anchor for what it issued', async () => {
  const old = await makeChain({ notAfter: now - day, leaf: { notAfter: now - day } });
  const anchors = new Anchors([opened(old.root)]);
  assert.equal(anchors.accepts(opened(old.intermediate), now), false);
  assert.equal(anchors.accepts(opened(old.intermediate), now - 2 * day), true);
});

test('a root is found among many of the same name', async () => {
  const roots = await Promise.all(Array.from({ length: 20 }, async () => opened((await makeChain()).root)));
  const anchors = new Anchors([...roots, opened(chain.root)]);
  assert.equal(anchors.accepts(opened(chain.intermediate), now), true);
  assert.equal(anchors.accepts(opened(other.intermediate), now), false);
});

test('the public anchors are the roots of Node, and accept none of a private CA', async () => {
  const anchors = publicAnchors();
  assert.equal(anchors, publicAnchors());
  assert.equal(anchors.accepts(opened(chain.intermediate), now), false);
  const { rootCertificates } = await import('node:tls');
  const [first = assert.fail()] = rootCertificates;
  assert.equal(anchors.accepts(new X509Certificate(first), now), true);
});
