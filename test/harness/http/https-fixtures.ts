/** Servers with their own HTTPS certificate, and helpers to wait until they reload it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { parseIdentifier } from '../../../src/base/identifier.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { ownCertificateSource, type TlsSource } from '../../../src/http/tls/tls-source.ts';
import { type TestServer, testServer } from './test-server.ts';

/** The certificate `vault`, as in `vault serve --tls-certificate vault`. */
export function ownSource(
  domains: readonly string[] = ['vault.example.test'],
  publicRoots?: readonly string[],
): (vault: Vault) => TlsSource {
  const name = parseCertName('vault');
  assert(name);
  const identifiers = domains.map((domain) => {
    const identifier = parseIdentifier(domain);
    assert(identifier, domain);
    return identifier;
  });
  return (vault) => ownCertificateSource(vault, name, identifiers, publicRoots);
}

/** A server with that certificate. */
export function httpsServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof testServer>[1] = {},
): Promise<TestServer> {
  return testServer(t, { tls: ownSource(), ...options });
}

/** Lets the server check for a new certificate repeatedly, until the test's condition holds. */
export async function untilSeen<T>(
  { world }: Pick<TestServer, 'world'>,
  look: () => Promise<T | undefined>,
): Promise<T> {
  for (let tries = 0; tries < 200; tries++) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await world.sleeping(1);
    world.advance(1000);
  }
  throw new Error('no change after 200 checks');
}

/** Lets the server check twice, so that it has processed a change. */
export async function twoLooks({ world }: Pick<TestServer, 'world'>): Promise<void> {
  for (let look = 0; look < 2; look++) {
    await world.sleeping(1);
    world.advance(1000);
  }
  await world.sleeping(1);
}
