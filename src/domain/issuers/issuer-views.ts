/** Issuers and DNS providers as administrators see them, without their secrets. */
import { formatLifetime } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import {
  type DnsProviderRow,
  findDnsProvider,
  listDnsProviders,
} from '../../db/tables/issuance/dns-providers.ts';
import { findAcmeIssuer, type IssuerRow, listIssuers } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { type CaSettings, settingsOfCa } from '../private-ca/ca-settings.ts';

export type IssuerView = {
  name: string;
  type: string;
  directory_url: string | null;
  email: string | null;
  eab_kid: string | null;
  profile: string | null;
  preferred_chain: string | null;
  /** The trust root for the CA's HTTPS in PEM; null for the public roots. */
  ca_pem: string | null;
  /** The accepted terms of service, or null. */
  terms_of_service: string | null;
  /** The id of its ACME account, once there is one. */
  account: string | null;
  paused_until: string | null;
  pause_reason: string | null;
  /** How a private CA is confined, and the defaults of its certificates; null for an ACME CA. */
  private_ca: PrivateCaView | null;
  created_at: string;
};

export type PrivateCaView = {
  common_name: string | null;
  permit_domains: readonly string[];
  permit_ips: readonly string[];
  path_length: number;
  /** In the format of the input. */
  lifetime: string;
  key_type: string;
};

export type DnsProviderView = { name: string; type: string; zones: string[]; created_at: string };

/** All issuers by name. */
export async function viewIssuers(vault: TimedContext): Promise<IssuerView[]> {
  const rows = await listIssuers(vault.db.reader);
  return Promise.all(rows.map((row) => viewIssuer(vault, row)));
}

/** One issuer. */
export async function viewIssuer({ db, world }: TimedContext, row: IssuerRow): Promise<IssuerView> {
  const ca = await findAcmeIssuer(db.reader, row.id);
  const paused = ca?.paused_until != null && ca.paused_until > world.now() ? ca.paused_until : null;
  const accepted = ca?.terms_of_service ?? null;
  return {
    name: row.name,
    type: row.type,
    directory_url: ca?.directory_url ?? null,
    email: ca?.email ?? null,
    eab_kid: ca?.eab_kid ?? null,
    profile: ca?.profile ?? null,
    preferred_chain: ca?.preferred_chain ?? null,
    ca_pem: ca?.ca_pem ?? null,
    terms_of_service: accepted === 'none' ? null : accepted,
    account: ca?.account_id == null ? null : String(ca.account_id),
    paused_until: formatTimestampOrNull(paused),
    pause_reason: paused === null ? null : (ca?.pause_reason ?? null),
    private_ca: row.type === 'acme' ? null : privateCaView(await settingsOfCa(db.reader, row.id)),
    created_at: formatTimestamp(row.created_at),
  };
}

function privateCaView(settings: CaSettings): PrivateCaView {
  return {
    common_name: settings.commonName ?? null,
    permit_domains: settings.permitDomains,
    permit_ips: settings.permitIps,
    path_length: settings.pathLength,
    lifetime: formatLifetime(settings.lifetime),
    key_type: settings.keyType,
  };
}

/** All DNS providers by name. */
export async function viewDnsProviders({ db }: DatabaseContext): Promise<DnsProviderView[]> {
  return (await listDnsProviders(db.reader)).map(dnsProviderView);
}

/** The DNS provider of this name, without its credentials. */
export async function viewDnsProvider(
  { db }: DatabaseContext,
  name: string,
): Promise<DnsProviderView | undefined> {
  const row = await findDnsProvider(db.reader, name);
  return row && dnsProviderView(row);
}

function dnsProviderView({ name, type, zones, created_at }: DnsProviderRow): DnsProviderView {
  return { name, type, zones: parseJson(zones), created_at: formatTimestamp(created_at) };
}
