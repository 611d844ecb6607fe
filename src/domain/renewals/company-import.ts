/** Puts a private CA under the root of a company and moves its certificates there. */
import type { Actor } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { type CompanyImport, type ImportOptions, importAuthority } from '../private-ca/company-root.ts';
import type { PrivateCa } from '../private-ca/rotation.ts';
import { renewAllOf } from './ca-rotation.ts';
import type { QueueContext } from './renewal-queue.ts';
import type { SpreadRenewals } from './renewal-spread.ts';

/**
 * Imports like `importAuthority`, and renews the certificates that renew automatically, spread over a day. Under the
 * same root as before, they are renewed on their schedules: none of them outlives the intermediate that issued it.
 */
export async function importCompanyAuthority(
  vault: SecretsContext & QueueContext,
  actor: Actor,
  ca: PrivateCa,
  file: Buffer,
  options: ImportOptions,
): Promise<CompanyImport & SpreadRenewals> {
  const imported = await importAuthority(vault, actor, ca, file, options);
  if (imported.former === undefined) return { ...imported, queued: 0, alreadyOpen: 0, lastAt: undefined };
  return { ...imported, ...(await renewAllOf(vault, actor, ca)) };
}
