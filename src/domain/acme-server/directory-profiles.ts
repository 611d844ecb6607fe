/** The profiles that a directory offers (draft-ietf-acme-profiles), and a sentence on each. */
import { formatLifetime } from '../../base/duration.ts';
import { listProfiles } from '../../db/tables/issuance/issuance-profiles.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext } from '../contexts.ts';
import { type Profile, profileIn } from '../private-ca/profile-settings.ts';

/** By name; empty for an issuer without profiles. */
export async function directoryProfiles(
  { db }: DatabaseContext,
  { id, name }: IssuerRow,
): Promise<Readonly<Record<string, string>>> {
  const rows = await listProfiles(db.reader, id);
  return Object.fromEntries(rows.map((row) => [row.name, sentenceOn(profileIn(name, row))]));
}

const usages = { server: 'For servers', client: 'For clients', both: 'For servers and clients' };

function sentenceOn({ usage = 'both', lifetime, maxLifetime }: Profile): string {
  const parts = [
    usages[usage],
    ...(lifetime === undefined ? [] : [`valid for ${formatLifetime(lifetime)}`]),
    ...(maxLifetime === undefined ? [] : [`for at most ${formatLifetime(maxLifetime)}`]),
  ];
  return parts.join(', ');
}
