/** Certificates to install by SSH, and the operations of the target. Tests need `needs('openssl')`. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../../src/base/secret.ts';
import { realWorld } from '../../../src/base/world.ts';
import { type SshTargetConfig, sshTarget } from '../../../src/targets/ssh-target.ts';
import { type Material, TargetError } from '../../../src/targets/target.ts';
import { makeChain } from '../ca/openssl-chain.ts';
import { loopbackGuard, loopbackOutbound } from '../loopback-guard.ts';

export type SshSettings = Partial<SshTargetConfig> & Pick<SshTargetConfig, 'port' | 'host_key' | 'files'>;

const made = new Map<number, Material>();

/** A version of the certificate `web`, with a chain and a key of its own. */
export function material(version = 1): Material {
  const known = made.get(version);
  if (known !== undefined) return known;
  const dir = mkdtempSync(join(tmpdir(), 'vault-test-'));
  const { leaf, fullchainPem } = makeChain(dir, { label: `Version ${version}` });
  rmSync(dir, { recursive: true });
  const certificate = leaf.certificatePem;
  assert(fullchainPem.startsWith(certificate));
  const created: Material = {
    ...{ name: 'web', version, domains: ['www.example.com'], fingerprint: 'ab'.repeat(32) },
    ...{ notAfter: '2045-01-01T00:00:00Z', certificate, chain: fullchainPem.slice(certificate.length) },
    ...{ fullchain: fullchainPem, privateKey: new Secret(leaf.keyPem) },
  };
  made.set(version, created);
  return created;
}

/** A target at 127.0.0.1. */
export function target(settings: SshSettings) {
  const config: SshTargetConfig = {
    ...{ host: '127.0.0.1', user: 'vault', private_key_mode: '0600', timeout: 60, ...settings },
  };
  return sshTarget.create(config, {
    ...{ world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard },
  });
}

/** Installs a version. */
export async function install(
  settings: SshSettings,
  { version = 1, signal = new AbortController().signal } = {},
) {
  return target(settings).install(material(version), null, signal);
}

/** Whether a version is installed. The private key is not known to the target. */
export async function isInstalled(settings: SshSettings, version = 1): Promise<boolean | undefined> {
  const { privateKey: _, ...publicPart } = material(version);
  return target(settings).isInstalled?.(publicPart, null, new AbortController().signal);
}

/** The message of an operation that fails as targets do. */
export async function failure(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof TargetError, String(error));
  return error.message;
}
