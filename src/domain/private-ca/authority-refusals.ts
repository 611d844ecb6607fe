/** The errors of a private CA that cannot create its next intermediate by itself, and the commands that help. */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { CaCertificateRow } from '../../db/tables/issuance/ca-certificates.ts';
import { findIssuerById } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext } from '../contexts.ts';

/** Only the root's key helps, which was exported. */
export async function rootKeyMissing(
  { db }: DatabaseContext,
  issuerId: number,
  reason: string,
): Promise<OperatorError> {
  const name = (await findIssuerById(db.reader, issuerId))?.name ?? '';
  return new OperatorError(`private CA ${name} ${reason}, and the key of its root was exported`, {
    hint: `Import the key; the next issuance creates the intermediate.\nFix: ${importRootKey(name)}`,
  });
}

/** Only the CA of the company helps. */
export async function intermediateExpired(
  { db }: DatabaseContext,
  issuerId: number,
  { not_after: end }: Pick<CaCertificateRow, 'not_after'>,
): Promise<Problem> {
  const name = (await findIssuerById(db.reader, issuerId))?.name ?? '';
  return new Problem('invalid_request', {
    detail: `The intermediate of issuer ${name} expired at ${formatTimestamp(end)}.`,
    hint: `The CA of the company issues the next one: "vault ca csr --issuer ${name}" prints the CSR, and "vault ca import" takes what it returns.`,
  });
}

/** The command that brings an exported key back. */
export function importRootKey(name: string): string {
  return `vault ca import-root-key FILE --passphrase-file FILE --issuer ${name}`;
}
