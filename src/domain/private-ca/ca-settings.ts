/** The settings of a private CA, as they are stored and as certificates of CAs state them. */
import { day } from '../../base/duration.ts';
import { type Json, parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { defaultKeyType, isKeyType, type KeyType } from '../../base/key-type.ts';
import type { AuthorityLimits } from '../../crypto/x509/x509-issuance.ts';
import type { Reader } from '../../db/database.ts';
import type { CaConstraints } from '../../db/schema/schema-private-ca.ts';
import { findPrivateCa, type PrivateCaRow } from '../../db/tables/issuance/private-cas.ts';
import { parseIpNetwork } from '../../net/ip-network.ts';

export type CaSettings = {
  /** Of the root; without one, a name with random digits. */
  readonly commonName: string | undefined;
  /** Domains (with all names below them) and networks that it may issue for; both empty for any name. */
  readonly permitDomains: readonly string[];
  readonly permitIps: readonly string[];
  /** How many CAs may follow the root in a chain. */
  readonly pathLength: number;
  /** Of certificates that ask for none: milliseconds, and the type of new keys. */
  readonly lifetime: number;
  readonly keyType: KeyType;
};

/** Those of the built-in CA, and of others that were given none. */
export const defaultSettings: CaSettings = {
  commonName: undefined,
  permitDomains: [],
  permitIps: [],
  pathLength: 1,
  lifetime: 90 * day,
  keyType: defaultKeyType,
};

/** The settings of an issuer that is a private CA. */
export async function settingsOfCa(reader: Reader, issuerId: number): Promise<CaSettings> {
  const row = await findPrivateCa(reader, issuerId);
  return row === undefined ? defaultSettings : settingsIn(row);
}

function settingsIn(row: PrivateCaRow): CaSettings {
  return {
    commonName: row.common_name ?? undefined,
    permitDomains: parseJsonOr(row.permit_domains, []),
    permitIps: parseJsonOr(row.permit_ips, []),
    pathLength: row.path_length ?? defaultSettings.pathLength,
    lifetime: row.lifetime ?? defaultSettings.lifetime,
    keyType: row.key_type !== null && isKeyType(row.key_type) ? row.key_type : defaultSettings.keyType,
  };
}

/** What the row of an issuer holds for these settings. */
export function settingsRow(issuerId: number, settings: CaSettings): PrivateCaRow {
  const { commonName, permitDomains, permitIps, pathLength, lifetime, keyType } = settings;
  return {
    issuer_id: issuerId,
    common_name: commonName ?? null,
    permit_domains: permitDomains.length === 0 ? null : toJson(permitDomains),
    permit_ips: permitIps.length === 0 ? null : toJson(permitIps),
    path_length: pathLength === defaultSettings.pathLength ? null : pathLength,
    lifetime: lifetime === defaultSettings.lifetime ? null : lifetime,
    key_type: keyType === defaultSettings.keyType ? null : keyType,
  };
}

/** The permitted names as the row of a CA certificate has them: the same text for the same names; null for any name. */
export function constraintsText({ permitDomains, permitIps }: CaSettings): Json<CaConstraints> | null {
  if (permitDomains.length + permitIps.length === 0) return null;
  return toJson({ domains: permitDomains.toSorted(), ips: permitIps.toSorted() });
}

/** What such a text permits. */
export function permittedIn(
  constraints: Json<CaConstraints> | null,
): Pick<CaSettings, 'permitDomains' | 'permitIps'> {
  if (constraints === null) return { permitDomains: [], permitIps: [] };
  const { domains, ips } = parseJson(constraints);
  return { permitDomains: domains, permitIps: ips };
}

/** The limits of a CA certificate that may be followed by `pathLength` others. */
export function authorityLimits(
  { permitDomains: domains, permitIps }: CaSettings,
  pathLength: number,
): AuthorityLimits {
  const networks = permitIps.flatMap((text) => parseIpNetwork(text) ?? []);
  const isConfined = domains.length + networks.length > 0;
  return { pathLength, permitted: isConfined ? { domains, networks } : undefined };
}
