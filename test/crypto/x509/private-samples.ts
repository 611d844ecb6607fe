/** What the private CA issues, one sample of each kind, for the programs of others that judge it. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { day, minute } from '../../../src/base/duration.ts';
import { type KeyType, keyTypes } from '../../../src/base/key-type.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { issueCrl } from '../../../src/crypto/x509/certificate-revocation-list.ts';
import type { LeafRequest } from '../../../src/crypto/x509/leaf-certificate.ts';
import { identifier, makeChain, makeLeaf, type PrivateChain } from '../../harness/ca/private-chain.ts';

export type Sample = PrivateChain & {
  readonly name: string;
  /** A name that the leaf is for, if it serves one. */
  readonly host: string | undefined;
};

const crlUrl = 'http://vault.example.com/client/crls/2';
const host = 'www.example.com';

/** By name: what differs from a leaf for both sides of TLS, with a name and an address, for 90 days. */
const leaves: Readonly<Record<string, Partial<LeafRequest>>> = {
  server: { usage: 'server' },
  client: {
    usage: 'client',
    identifiers: [],
    emails: ['alice@example.com'],
    subject: ['CN=alice', 'O=Example', 'OU=Operations', 'C=DE'],
  },
  wildcard: { identifiers: [identifier('*.example.com'), identifier('example.com')] },
  addresses: { identifiers: [identifier('192.0.2.1'), identifier('2001:db8::1')] },
  SPIFFE: { identifiers: [], uris: ['spiffe://example.com/web'] },
};

/**
 * A leaf of every key type and of every kind of name and usage, one for five minutes, and one of a CA that is confined.
 */
export async function privateSamples(now: number): Promise<readonly Sample[]> {
  const usual = { notBefore: now - minute, notAfter: now + 90 * day, crlUrl };
  const chain = await makeChain({ keyType: 'ec384' });
  const names = [identifier(host), identifier('192.0.2.1')];
  const leaf = async (
    name: string,
    request: Partial<LeafRequest>,
    keyType: KeyType = 'ec256',
  ): Promise<Sample> => {
    const issued = await makeLeaf(chain.intermediate, { ...usual, identifiers: names, ...request }, keyType);
    const isForHost = request.identifiers === undefined && request.usage !== 'client';
    return { ...chain, name, leaf: issued, host: isForHost ? host : undefined };
  };
  const samples: Sample[] = [];
  for (const keyType of keyTypes) samples.push(await leaf(keyType, {}, keyType));
  for (const [name, request] of Object.entries(leaves)) samples.push(await leaf(name, request));
  samples.push(await leaf('five minutes', { notAfter: now + 5 * minute }));
  const permitted = { domains: ['example.com'], networks: [{ bytes: [192, 0, 2, 0], length: 24 }] };
  const confined = await makeChain({ permitted, leaf: { ...usual, identifiers: names } });
  samples.push({ ...confined, name: 'a confined CA', host });
  return samples;
}

/** The files that a validator reads. */
export type SampleFiles = { readonly [File in 'root' | 'intermediate' | 'leaf' | 'chain' | 'crls']: string };

/** Writes a sample as PEM; `chain` has leaf and intermediate, `crls` has empty CRLs of root and intermediate. */
export async function sampleFiles(folder: string, sample: Sample, now: number): Promise<SampleFiles> {
  const dir = mkdtempSync(join(folder, 'sample-'));
  const file = (name: string, text: string) => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  const terms = { number: 1, thisUpdate: now - minute, nextUpdate: now + day };
  const crls = await Promise.all([sample.root, sample.intermediate].map((one) => issueCrl(one, terms, [])));
  const pem = (name: 'root' | 'intermediate' | 'leaf') => encodePem('CERTIFICATE', sample[name].certificate);
  return {
    root: file('root.pem', pem('root')),
    intermediate: file('intermediate.pem', pem('intermediate')),
    leaf: file('leaf.pem', pem('leaf')),
    chain: file('chain.pem', pem('leaf') + pem('intermediate')),
    crls: file('crls.pem', crls.map((crl) => encodePem('X509 CRL', crl)).join('')),
  };
}
