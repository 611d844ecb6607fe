/**
 * Targets on this host that issuers, DNS providers and channels of a vault from before the outbound guard use. They are
 * stored once, so that an upgrade breaks none of these and nothing that is added later benefits.
 */
import { isIP } from 'node:net';
import { requireIntegrity } from '../../base/integrity.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import { defaultPorts } from '../../channels/email-channel.ts';
import { SealError } from '../../crypto/secrets/sealing.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { findAcmeIssuer, listIssuers } from '../../db/tables/issuance/issuers.ts';
import { listChannels } from '../../db/tables/notifications/notification-channels.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { dnsProviderTypes, readProviderConfig } from '../../dns/providers/provider-types.ts';
import { serverIn } from '../../dns/providers/rfc2136.ts';
import {
  type AllowedOutbound,
  allowanceFor,
  parseAllowedOutbound,
  refusalOf,
} from '../../net/outbound-addresses.ts';
import { isLocalhost } from '../../net/outbound-guard.ts';
import type { DatabaseContext, KeyringContext, LogContext } from '../contexts.ts';
import { channelSettingsOwner, dnsSecretOwner, openFor } from '../sealed-secrets.ts';

type Target = { readonly host: string; readonly port: number };

/**
 * Targets that the guard allows without a setting. A new vault has none; the first opening of an older one stores them.
 * Without a valid tag they are ignored: otherwise write access to the database could open up this host.
 */
export async function keptTargets({
  db,
  log,
}: DatabaseContext & LogContext): Promise<readonly AllowedOutbound[]> {
  const text = await readSetting(db.reader, 'kept-outbound-targets');
  if (text === undefined) return [];
  const tag = await readSetting(db.reader, 'kept-outbound-tag');
  if (Buffer.isBuffer(tag) && requireIntegrity(db).fits('outbound targets', String(text), tag)) {
    return allowed(JSON.parse(String(text)) as string[]);
  }
  log.error({}, 'kept outbound addresses refused: their database row was modified outside the vault');
  return [];
}

/** The targets of a vault from an earlier version, as text for `storeTargets`. */
export async function targetsToKeep(parts: DatabaseContext & KeyringContext): Promise<string> {
  const known = await readSetting(parts.db.reader, 'kept-outbound-targets');
  if (known !== undefined) return String(known);
  const stored = await storedTargets(parts);
  return JSON.stringify([...new Set(stored.flatMap(allowancesOf))]);
}

/** Stores the targets, in the transaction that adopts a vault of an earlier version. */
export async function storeTargets(writer: Writer, text: string): Promise<void> {
  await putSetting(writer, 'kept-outbound-targets', text);
  await putSetting(writer, 'kept-outbound-tag', requireIntegrity(writer).tag('outbound targets', text));
}

function allowed(texts: readonly string[]): AllowedOutbound[] {
  return texts.map(parseAllowedOutbound).filter((one) => one !== undefined);
}

/** IP addresses, and names that are this host by definition: what other names resolve to, their owners decide. */
function allowancesOf({ host, port }: Target): string[] {
  const addresses = isLocalhost(host) ? ['127.0.0.1', '::1'] : isIP(host) === 0 ? [] : [host];
  return addresses
    .filter((address) => refusalOf(address, port, []) !== undefined)
    .map((address) => allowanceFor(address, port));
}

async function storedTargets({ db, keyring }: DatabaseContext & KeyringContext): Promise<Target[]> {
  const { reader } = db;
  const issuers = await issuerTargets(reader);
  const providerRows = await listDnsProviders(reader);
  const channelRows = await listChannels(reader);
  const providers = providerRows.map(async ({ id, type, sealed_secret: sealed }) => {
    const kind = dnsProviderTypes.get(type);
    if (kind === undefined) return [];
    const text = openFor({ keyring }, dnsSecretOwner(id), sealed).expose().toString('utf8');
    return targetsIn(await readProviderConfig(kind, text));
  });
  const channels = channelRows.map(async ({ id, type, sealed_settings: sealed }) => {
    if (!channelTypes.has(type)) return [];
    const text = openFor({ keyring }, channelSettingsOwner(id), sealed).expose().toString('utf8');
    return targetsIn(JSON.parse(text));
  });
  const found = await Promise.allSettled([...providers, ...channels]);
  return [...issuers, ...found.flatMap(readable)];
}

/** A record that cannot be unsealed or parsed makes no connections either. */
function readable(result: PromiseSettledResult<Target[]>): Target[] {
  if (result.status === 'fulfilled') return result.value;
  if (result.reason instanceof SealError || result.reason instanceof DnsProviderError) return [];
  throw result.reason;
}

async function issuerTargets(reader: Reader): Promise<Target[]> {
  const rows = await Promise.all((await listIssuers(reader)).map(({ id }) => findAcmeIssuer(reader, id)));
  return rows.flatMap((row) => targetOfUrl(row?.directory_url));
}

/** Every URL among the settings; the server of `rfc2136`; host and port of `email`. */
function targetsIn(config: unknown): Target[] {
  const settings = config as Readonly<Record<string, unknown>>;
  const { server, host, port, security } = settings;
  const update = typeof server === 'string' ? serverIn(server) : undefined;
  const usual = defaultPorts[security as keyof typeof defaultPorts];
  return [
    ...Object.values(settings).flatMap(targetOfUrl),
    ...(update === undefined ? [] : [update]),
    ...(typeof host === 'string' ? [{ host, port: Number(port ?? usual) }] : []),
  ];
}

function targetOfUrl(value: unknown): Target[] {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return [];
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return [{ host: url.hostname.replace(/^\[|\]$/g, ''), port }];
}
