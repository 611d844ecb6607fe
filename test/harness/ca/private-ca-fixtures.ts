/** Fixtures for tests of private CAs that expire: a second CA, exported keys, and clocks set by the expiry of roots. */
import { Secret } from '../../../src/base/secret.ts';
import { formatTimestamp } from '../../../src/base/timestamp.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { addPrivateCa } from '../../../src/domain/issuers/private-issuers.ts';
import { exportRootKey, importRootKeyFile } from '../../../src/domain/private-ca/offline-root.ts';
import { createPrivateCaInput } from '../../../src/domain/private-ca/private-ca-inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { TestWorld } from '../test-world.ts';

const passphrase = new Secret('several words in a row');

type Opened = { readonly vault: Vault; readonly world: TestWorld };

/** Adds the private CA `staging-ca`. */
export async function addStagingCa(vault: Vault): Promise<void> {
  await addPrivateCa(
    vault,
    localCli,
    parseInput(createPrivateCaInput, { name: 'staging-ca', type: 'local-ca' }),
  );
}

/** Exports the key of the root, and returns the file. */
export async function exportRoot(vault: Vault, issuer: string): Promise<Buffer> {
  let file = '';
  const keep = (pem: string) => {
    file = pem;
    return Buffer.from(pem);
  };
  await exportRootKey(vault, { actor: localCli, issuer, passphrase, keep });
  return Buffer.from(file);
}

/** Brings an exported key back. */
export async function importRoot(vault: Vault, issuer: string, file: Buffer): Promise<void> {
  await importRootKeyFile(vault, { actor: localCli, issuer, file, passphrases: [passphrase] });
}

/** When the CA certificate of a private CA that was created last expires, in UTC milliseconds and as people read it. */
export async function caExpiry(vault: Vault, issuer: string, role: 'root' | 'intermediate') {
  const { at } = await vault.db.reader
    .selectFrom('ca_certificates as c')
    .innerJoin('issuers as i', 'i.id', 'c.issuer_id')
    .select('c.not_after as at')
    .where('i.name', '=', issuer)
    .where('c.role', '=', role)
    .orderBy('c.id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  return { at, text: formatTimestamp(at) };
}

/** `caExpiry` of the root. */
export const rootExpiry = (vault: Vault, issuer: string) => caExpiry(vault, issuer, 'root');

/** Moves the clock until the CA certificate, usually the root, is valid for `left` milliseconds. */
export async function untilLeft(
  { vault, world }: Opened,
  issuer: string,
  left: number,
  role: 'root' | 'intermediate' = 'root',
): Promise<void> {
  world.advance((await caExpiry(vault, issuer, role)).at - left - world.now());
}
