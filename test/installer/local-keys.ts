/** Jobs of the client installer that keep their private key (`--local-key`). */
import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientLaunch, Machine } from '../harness/client/installer.ts';
import { type ClientVault, usual } from '../harness/client/vault.ts';

/** The scopes that such a job needs. */
export const signScopes = ['--scope', 'certificates:read', '--scope', 'certificates:sign'] as const;

/** Runs the usual command with `--local-key`. Without a key in `launch`, the job gets one with the two scopes. */
export async function installLocal(
  vault: ClientVault,
  client: Machine,
  args: readonly string[] = [],
  { url = vault.url, ...launch }: ClientLaunch & { readonly url?: string } = {},
) {
  const key = launch.environment?.SERVICE_API_KEY ?? (await signingKey(vault));
  return client.run(['--server', url, ...vault.trust, ...usual(client), '--local-key', ...args], {
    ...launch,
    environment: { ...launch.environment, SERVICE_API_KEY: key },
  });
}

export function signingKey(vault: ClientVault): Promise<string> {
  return vault.newKey(...signScopes, '--certificate', '*');
}

/** A file in the folder with the keys of the job. */
export function keyFile(client: Machine, name = 'current.pem'): string {
  return join(client.home, 'vault', 'state', client.jobs()[0] ?? 'none', 'local-key', name);
}

/** The names of these files; none if the folder does not exist. */
export function keyFiles(client: Machine): string[] {
  const folder = join(keyFile(client), '..');
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

/** Makes the key so old that it is due for a new one. */
export function age(client: Machine): void {
  const path = keyFile(client);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/^created \d+/, 'created 20250101000000'));
}

/** The public key of a private key in the destination, as SPKI DER in base64. */
export function publicKey(client: Machine, name = 'tls.key'): string {
  return spki(createPublicKey(createPrivateKey(client.file(name))));
}

/** The public key of a certificate. */
export function certifiedKey(pem: string): string {
  return spki(new X509Certificate(pem).publicKey);
}

function spki(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'der' }).toString('base64');
}

/** The current full chain of a certificate in the vault. */
export async function chainInVault(vault: ClientVault, name = 'web'): Promise<string> {
  return vault.command('certificate', 'export', '--name', name, '--out', '-', '--file', 'fullchain.crt');
}
