/** TXT records at Azure DNS, by Azure Resource Manager: etags keep changes by others from getting lost. */
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { withoutTrailing } from '../../base/trailing.ts';
import type { DnsContext, DnsProviderError, DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { RecentZones } from '../resolver/recent-zones.ts';
import { accountZone, relativeName, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { bearerToken } from './bearer-token.ts';
import { type ApiAnswer, type JsonApi, jsonApi } from './json-api.ts';
import { recordSetProvider } from './record-set.ts';

const config = z.strictObject({
  tenant_id: credential('the directory (tenant) id'),
  client_id: credential('the application (client) id'),
  client_secret: credential('a client secret of the application (its value, not its id)'),
  subscription_id: credential('the id of the subscription'),
  resource_group: credential('the resource group of the DNS zone'),
  zone_name: credential('the name of the DNS zone').optional(),
  base_url: apiUrl.optional(),
  login_url: apiUrl.optional(),
});

type Settings = z.infer<typeof config>;

const title = 'Azure DNS';
const permission =
  'Check tenant_id, client_id and client_secret (it may have expired), and that the application has the role DNS Zone Contributor on the zone or its resource group.';
const version = '2018-05-01';
/** Somebody changed the set, or is just doing it. */
const conflicts = [409, 412];

const zonePage = z.object({ value: z.array(z.object({ name: z.string() })), nextLink: z.string().nullish() });
type AzureZone = { readonly name: string };
const setSchema = z.object({
  etag: z.string(),
  properties: z.object({
    TTL: z.number(),
    metadata: z.record(z.string(), z.string()).nullish(),
    TXTRecords: z.array(z.object({ value: z.array(z.string()) })).default([]),
  }),
});
type HeldSet = z.infer<typeof setSchema>;

/** State: the set as Azure has it; undefined where there is none. */
export const azureDns: DnsProviderType<Settings> = {
  type: 'azure-dns',
  title,
  config,
  create: (settings, context) => {
    const api = resourceManager(settings, context);
    const group =
      `/subscriptions/${encodeURIComponent(settings.subscription_id)}/resourceGroups/` +
      `${encodeURIComponent(settings.resource_group)}/providers/Microsoft.Network/dnsZones`;
    const recent = new RecentZones<AzureZone>(context.world);
    return recordSetProvider<HeldSet | undefined>(context, title, async (record, signal) => {
      const zone = await zoneName(api, settings, { group, recent }, record, signal);
      const relative = encodeURIComponent(relativeName(record.name, zone)) || '@';
      const path = `${group}/${encodeURIComponent(zone)}/TXT/${relative}`;
      const query = { 'api-version': version };
      const purpose = `change the TXT records of ${record.name}`;
      const refused = (answer: ApiAnswer): DnsProviderError | undefined =>
        conflicts.includes(answer.status) ? api.refusal(answer) : undefined;
      return {
        read: async () => {
          const reading = `read the TXT records of ${record.name}`;
          const request = { method: 'GET', path, purpose: reading, query, accept: [404] } as const;
          const answer = await api.send(request, signal);
          if (answer.status === 404) return { values: [], state: undefined };
          const state = api.read(setSchema, answer);
          return { values: state.properties.TXTRecords.map(({ value }) => value.join('')), state };
        },
        add: async (value, { state }) => {
          const { TTL = 60, metadata, TXTRecords = [] } = state?.properties ?? {};
          const added = { value: value.match(/[\s\S]{1,255}/g) ?? [] };
          const properties = { TTL, ...(metadata && { metadata }), TXTRecords: [...TXTRecords, added] };
          const headers = state === undefined ? { 'If-None-Match': '*' } : { 'If-Match': state.etag };
          const request = { method: 'PUT', path, purpose, query, headers, json: { properties } } as const;
          return refused(await api.send({ ...request, accept: conflicts }, signal));
        },
        remove: async (value, { state }) => {
          if (state === undefined) return undefined;
          const { TTL, metadata, TXTRecords } = state.properties;
          const rest = TXTRecords.filter((held) => held.value.join('') !== value);
          const properties = { TTL, ...(metadata && { metadata }), TXTRecords: rest };
          const request = { path, purpose, query, headers: { 'If-Match': state.etag } };
          const answer = await api.send(
            rest.length === 0
              ? { ...request, method: 'DELETE', accept: [404, ...conflicts] }
              : { ...request, method: 'PUT', json: { properties }, accept: conflicts },
            signal,
          );
          return refused(answer);
        },
      };
    });
  },
};

/** The API with its tokens, which come from the login server of the tenant. */
function resourceManager(settings: Settings, context: DnsContext): JsonApi {
  const secret = new Secret(settings.client_secret);
  const baseUrl = settings.base_url ?? 'https://management.azure.com';
  const common = { context, permission, secrets: [secret], wordsOf };
  const login = jsonApi({
    ...common,
    title: 'The Azure login',
    baseUrl: settings.login_url ?? 'https://login.microsoftonline.com',
  });
  const token = bearerToken(context.world, async (signal) => {
    const form = {
      grant_type: 'client_credentials',
      client_id: settings.client_id,
      client_secret: secret.expose(),
      scope: `${withoutTrailing(baseUrl, '/')}/.default`,
    };
    const path = `/${encodeURIComponent(settings.tenant_id)}/oauth2/v2.0/token`;
    const answer = await login.send({ method: 'POST', path, purpose: 'issue a token', form }, signal);
    const issued = login.read(z.object({ access_token: z.string(), expires_in: z.coerce.number() }), answer);
    return { token: issued.access_token, lifetimeMs: issued.expires_in * second };
  });
  return jsonApi({
    ...common,
    title,
    baseUrl,
    authorize: (_, signal) => token.headers(signal),
    renew: token.forget,
  });
}

async function zoneName(
  api: JsonApi,
  { zone_name }: Settings,
  { group, recent }: { readonly group: string; readonly recent: RecentZones<AzureZone> },
  record: TxtRecord,
  signal: AbortSignal,
): Promise<string> {
  const zones =
    zone_name === undefined
      ? (recent.get(group) ?? (await zonesOf(api, group, signal)))
      : [{ name: zone_name }];
  const zone = accountZone(zones, record);
  if (zone !== undefined) {
    recent.set(group, zones);
    return zone.name;
  }
  throw zoneMissing(
    title,
    record,
    'Check subscription_id, resource_group and zone_name, and that it is a public DNS zone.',
  );
}

async function zonesOf(api: JsonApi, path: string, signal: AbortSignal): Promise<readonly AzureZone[]> {
  const zones: AzureZone[] = [];
  const purpose = 'list the zones';
  const seen = new Set<string>();
  let answer = await api.send({ method: 'GET', path, purpose, query: { 'api-version': version } }, signal);
  for (;;) {
    const { value, nextLink } = api.read(zonePage, answer);
    zones.push(...value);
    if (!nextLink || seen.has(nextLink)) return zones;
    seen.add(nextLink);
    answer = await api.send({ method: 'GET', path: nextLink, purpose }, signal);
  }
}

/** Azure's own errors, and those of its login. */
function wordsOf(body: unknown): string | undefined {
  const resource = z
    .object({ error: z.object({ code: z.string(), message: z.string() }) })
    .safeParse(body).data;
  if (resource !== undefined) return `${resource.error.message} [${resource.error.code}]`;
  const flat = z.object({ code: z.string(), message: z.string() }).safeParse(body).data;
  if (flat !== undefined) return `${flat.message} [${flat.code}]`;
  const login = z
    .object({ error: z.string(), error_description: z.string().optional() })
    .safeParse(body).data;
  return login && `${login.error_description ?? ''} [${login.error}]`;
}
