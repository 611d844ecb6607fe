/**
 * The state of a vault in the form of the document (desired-state.ts): compared with the desired state, and exported.
 * Secrets stay sealed until they are compared.
 */
import { formatLifetime } from '../../base/duration.ts';
import { type Json, parseJson } from '../../base/json.ts';
import type { KeyType } from '../../base/key-type.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import { allowlistsOf } from '../../db/tables/access/api-key-certificates.ts';
import { type ListedApiKeyRow, listApiKeys, listApiKeysNamed } from '../../db/tables/access/api-keys.ts';
import {
  type CertificateSummaryRow,
  findCertificateSummary,
  pagesOfSummaries,
} from '../../db/tables/certificates/certificate-summaries.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { listProfiles } from '../../db/tables/issuance/issuance-profiles.ts';
import { findAcmeIssuer, type IssuerRow, listIssuers } from '../../db/tables/issuance/issuers.ts';
import type { KeyringContext, SealingContext } from '../contexts.ts';
import { dnsProviderSecret } from '../dns-providers/dns-provider-change.ts';
import { maxLabelLength } from '../input-strings.ts';
import { settingsOfCa } from '../private-ca/ca-settings.ts';
import { leafSettings } from '../private-ca/leaf-settings.ts';
import { profileIn } from '../private-ca/profile-settings.ts';
import { externalAccountKeyOwner, openFor } from '../sealed-secrets.ts';
import { acmeClientsOf } from './acme-client-definition.ts';
import { type Definition, privateCaDefinition } from './definition.ts';
import { deployTargetsOf } from './deploy-target-definition.ts';
import type { Section } from './desired-sections.ts';

/** An object that the vault has. */
export type Held = {
  /** Of an API key, its id. */
  readonly id?: number;
  readonly definition: Definition;
  /** Of a private CA: its profiles by name, each with the type of new keys, if it has one. */
  readonly profiles?: ReadonlyMap<string, KeyType | undefined>;
  /** Where it has one. */
  readonly secret?: () => Secret | undefined;
  /** Of an imported certificate: leaf and chain as PEM. */
  readonly material?: () => Promise<string | undefined>;
  /** Of an API key: its name, where other keys have the same. */
  readonly sharedName?: string;
  /** Of an API key or ACME client: it has expired or is revoked, and so is as good as gone. */
  readonly isOver?: boolean;
  /** Of an ACME client: it is revoked, and keeps its name. */
  readonly isRevoked?: boolean;
};

/**
 * By section and name. Revoked API keys are left out; of several keys with one name, each has its id after the name, as
 * in `www (id 3)`.
 */
export type VaultState = Readonly<Record<Section, ReadonlyMap<string, Held>>>;

/** Which objects to read: certificates and API keys by name, keys also by id. Issuers and DNS providers are few. */
export type StateExtract = { readonly names: readonly string[]; readonly keyIds: readonly number[] };

/**
 * Reads the state through `reader`: the reading connection, or a transaction under way. With `only`, a transaction need
 * not hold the lock for longer than it takes to read those.
 */
export async function readVaultState(
  vault: SealingContext,
  reader: Reader,
  only?: StateExtract,
): Promise<VaultState> {
  const issuers = await listIssuers(reader);
  const names = new Map(issuers.map(({ id, name }) => [id, name]));
  const publicIssuers = new Set(issuers.filter(({ type }) => type === 'acme').map(({ name }) => name));
  const summaries =
    only === undefined
      ? (await Array.fromAsync(pagesOfSummaries(reader))).flat()
      : await summariesOf(reader, only.names);
  // ACME clients order theirs themselves.
  const certificates = summaries.filter(({ acme_client_id }) => acme_client_id === null);
  return {
    issuers: await issuersOf(vault, reader, issuers),
    dns_providers: new Map(
      (await listDnsProviders(reader)).map((row) => [
        row.name,
        {
          definition: { type: row.type, zones: parseJson(row.zones) },
          secret: () => dnsProviderSecret(vault, row),
        },
      ]),
    ),
    certificates: new Map(
      certificates
        .filter(({ issuer_id }) => issuer_id !== null)
        .map((row) => [row.name, { definition: issued(row, names) }]),
    ),
    imported_certificates: new Map(
      certificates
        .filter(({ issuer_id }) => issuer_id === null)
        .map((row) => [
          row.name,
          { definition: { labels: labelList(row.labels) }, material: () => materialOf(reader, row) },
        ]),
    ),
    deploy_targets: await deployTargetsOf(vault, reader, only?.names),
    api_keys: await keysOf(reader, vault.world.now(), only),
    acme_clients: await acmeClientsOf(reader, vault.world.now(), publicIssuers, only?.names),
  };
}

async function issuersOf(
  vault: KeyringContext,
  reader: Reader,
  rows: readonly IssuerRow[],
): Promise<Map<string, Held>> {
  const held = new Map<string, Held>();
  for (const { id, name } of rows) {
    const ca = await findAcmeIssuer(reader, id);
    if (ca === undefined) {
      const profiles = (await listProfiles(reader, id)).map((row) => profileIn(name, row));
      held.set(name, {
        definition: privateCaDefinition(await settingsOfCa(reader, id)),
        profiles: new Map(profiles.map((profile) => [profile.name, profile.keyTypes[0]])),
      });
      continue;
    }
    const { sealed_eab_key: sealed } = ca;
    const definition = {
      directory_url: ca.directory_url,
      email: ca.email ?? undefined,
      eab_kid: ca.eab_kid ?? undefined,
      ca_pem: ca.ca_pem ?? undefined,
      profile: ca.profile ?? undefined,
      preferred_chain: ca.preferred_chain ?? undefined,
      accept_terms: ca.terms_of_service !== null,
    };
    const owner = externalAccountKeyOwner(id);
    const secret = () => (sealed === null ? undefined : openFor(vault, owner, sealed));
    held.set(name, { definition, secret });
  }
  return held;
}

async function summariesOf(reader: Reader, names: readonly string[]): Promise<CertificateSummaryRow[]> {
  const found: CertificateSummaryRow[] = [];
  for (const name of names) {
    const row = await findCertificateSummary(reader, name);
    if (row !== undefined) found.push(row);
  }
  return found;
}

function issued(row: CertificateSummaryRow, issuers: ReadonlyMap<number, string>): Definition {
  return {
    ...(row.domains !== '[]' && { domains: parseJson(row.domains) }),
    ...leafSettings(row),
    issuer: row.issuer_name ?? undefined,
    fallback_issuer: issuers.get(row.fallback_issuer_id ?? 0),
    lifetime: row.lifetime === null ? undefined : formatLifetime(row.lifetime),
    profile: row.profile ?? undefined,
    challenge: row.challenge ?? undefined,
    ...(row.csr === null ? { key_type: row.key_type, reuse_key: row.reuse_key === 1 } : { csr: row.csr }),
    auto_renew: row.auto_renew === 1,
    disabled: row.disabled_at !== null,
    labels: labelList(row.labels),
  };
}

/** Undefined for none. */
function labelList(text: Json<string[]> | null): readonly string[] | undefined {
  return text === null ? undefined : parseJson(text);
}

async function materialOf(
  reader: Reader,
  { id, current_version: number }: CertificateSummaryRow,
): Promise<string | undefined> {
  const version = number === null ? undefined : await findVersion(reader, id, number);
  return version && version.certificate_pem + version.chain_pem;
}

async function keysOf(reader: Reader, now: number, only?: StateExtract): Promise<Map<string, Held>> {
  const rows =
    only === undefined
      ? (await listApiKeys(reader)).filter(({ revoked_at }) => revoked_at === null)
      : await listApiKeysNamed(reader, only.names, only.keyIds);
  const ids = rows.map(({ id }) => id);
  const allowlists = Map.groupBy(await allowlistsOf(reader, ids), ({ api_key_id }) => api_key_id);
  const namesakes = Map.groupBy(rows, ({ name }) => name);
  return new Map(
    rows.map((row) => {
      const isAlone = namesakes.get(row.name)?.length === 1;
      const allowlist = (allowlists.get(row.id) ?? []).map(({ name }) => name);
      const held = {
        id: row.id,
        definition: keyDefinition(row, allowlist),
        isOver: row.expires_at !== null && row.expires_at <= now,
      };
      if (isAlone) return [row.name, held];
      return [distinctName(row, namesakes), { ...held, sharedName: row.name }];
    }),
  );
}

/** A key's name with its id, where other keys have the same name: unique, and not longer than names may be. */
function distinctName({ name, id }: ListedApiKeyRow, taken: ReadonlyMap<string, unknown>): string {
  for (let suffix = ` (id ${id})`; ; suffix += '+') {
    const distinct = `${name.slice(0, maxLabelLength - suffix.length)}${suffix}`;
    if (!taken.has(distinct)) return distinct;
  }
}

function keyDefinition(row: ListedApiKeyRow, allowlist: readonly string[]): Definition {
  const networks = parseJson(row.allowed_networks);
  return {
    scopes: parseJson(row.scopes),
    certificates: row.any_certificate === 1 ? ['*'] : allowlist,
    allowed_networks: networks.length === 0 ? undefined : networks,
    profiles: row.profiles === null ? undefined : parseJson(row.profiles),
    role: row.role ?? undefined,
    certificate_labels: labelList(row.certificate_labels),
    reach: labelList(row.reach),
    labels: labelList(row.labels),
    client_certificate: row.client_certificate ?? undefined,
    expires_at: row.expires_at === null ? undefined : formatTimestamp(row.expires_at),
  };
}
