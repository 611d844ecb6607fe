/** Servers with HTTPS of their own for tests, and how a test waits for what they notice by themselves. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { parseCertName } from '../../src/base/cert-name.ts';
import { parseIdentifier } from '../../src/base/identifier.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { ownCertificateSource, type TlsSource } from '../../src/http/tls/tls-source.ts';
import { type TestServer, testServer } from './test-server.ts';

/** A certificate of the vault called `vault`, as `vault serve --tls-certificate vault` has it. */
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

/** Lets the server look for a new certificate again and again, until the test sees what it waits for. */
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
  throw new Error('nothing was seen in 200 looks');
}

/** Lets the server look twice, so that what it does about a change has been done. */
export async function twoLooks({ world }: Pick<TestServer, 'world'>): Promise<void> {
  for (let look = 0; look < 2; look++) {
    await world.sleeping(1);
    world.advance(1000);
  }
  await world.sleeping(1);
}
