/** Accounts, issuers and challenges as the ACME engine stores them, and administrators with a session. */

import type { AcmeAccountStatus } from '../../../src/db/schema/schema.ts';
import { insertAcmeAccount } from '../../../src/db/tables/issuance/acme-accounts.ts';
import { type AcmeChallengeRow, insertChallenge } from '../../../src/db/tables/issuance/acme-challenges.ts';
import { insertAcmeIssuer, insertIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import type { Vault } from '../../../src/domain/vault.ts';

export const directory = 'https://ca.example.test/directory';

/** The bytes of the sealed account key, which must not leak. */
export const sealedKey = Buffer.from('sealed-account-key');

/** The test server option that gives alice a session, and the header lines that send it. */
export const alice = {
  administrators: { 'token-of-alice': 'alice' },
  line: 'Sec-Fetch-Site: same-origin\r\nCookie: vault_session=token-of-alice',
  init: { headers: { 'Sec-Fetch-Site': 'same-origin', Cookie: 'vault_session=token-of-alice' } },
} as const;

/** Adds an account, which no issuer uses yet, and returns its id. */
export async function makeAccount(
  vault: Vault,
  options: { issuer?: string; email?: string | null; status?: AcmeAccountStatus } = {},
): Promise<number> {
  return vault.db.write((writer) =>
    insertAcmeAccount(writer, {
      issuer: options.issuer ?? 'first',
      directory_url: directory,
      account_url: 'https://ca.example.test/account/1',
      email: options.email === undefined ? 'ops@example.test' : options.email,
      status: options.status ?? 'valid',
      sealed_private_key: sealedKey,
      created_at: vault.world.now(),
    }),
  );
}

/** Adds an issuer that uses the account. */
export async function makeIssuer(vault: Vault, name: string, accountId: number): Promise<void> {
  await vault.db.write(async (writer) => {
    const id = await insertIssuer(writer, { name, type: 'acme', created_at: vault.world.now() });
    await insertAcmeIssuer(writer, { issuer_id: id, directory_url: directory, account_id: accountId });
  });
}

/** Presents a challenge, as the engine does before it asks the CA to validate it. */
export async function putChallenge(
  vault: Vault,
  challenge: Pick<AcmeChallengeRow, 'type' | 'identifier' | 'key_authorization'> & {
    readonly token?: string;
    readonly renewal_id?: number;
  },
): Promise<AcmeChallengeRow> {
  return vault.db.write((writer) => insertChallenge(writer, { ...challenge, created_at: vault.world.now() }));
}
