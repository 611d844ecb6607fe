/** A chain and an OCSP response about its leaf, by the openssl program. Tests need `needs('openssl')`. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeChain, openssl } from '../ca/openssl-chain.ts';
import type { Identity } from './tls-servers.ts';

/** For `www.example.com`; the response (DER) says that the leaf is good. */
export function stapledChain(dir: string): { readonly identity: Identity; readonly response: Buffer } {
  const { leaf, intermediates, fullchainPem } = makeChain(dir);
  const [, issuer] = intermediates;
  const { serialNumber } = new X509Certificate(leaf.certificatePem);
  writeFileSync(join(dir, 'ocsp.txt'), `V\t450101000000Z\t\t${serialNumber}\tunknown\t/CN=www.example.com\n`);
  openssl(
    dir,
    ...['ocsp', '-index', 'ocsp.txt', '-CA', issuer.certificatePath, '-rsigner', issuer.certificatePath],
    ...['-rkey', issuer.keyPath, '-issuer', issuer.certificatePath, '-cert', leaf.certificatePath],
    ...['-ndays', '7', '-respout', 'ocsp.der', '-noverify'],
  );
  const text = openssl(dir, 'ocsp', '-respin', 'ocsp.der', '-resp_text', '-noverify').toString();
  assert.match(text, /Cert Status: good/);
  return {
    identity: { key: leaf.keyPem, cert: fullchainPem },
    response: readFileSync(join(dir, 'ocsp.der')),
  };
}
