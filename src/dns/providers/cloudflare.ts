/** TXT records at Cloudflare, by its API v4. */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import type { DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { RecentZones } from '../resolver/recent-zones.ts';
import { quoteTxt, unquoteTxt } from '../resolver/txt-string.ts';
import { zoneCandidates, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type ApiAnswer, type ApiRequest, type JsonApi, jsonApi } from './json-api.ts';
import { recordListProvider } from './record-list.ts';

const config = z.strictObject({
  api_token: credential('an API token of Cloudflare (not the global API key)'),
  base_url: apiUrl.optional(),
});

const title = 'Cloudflare';
const permission =
  'The API token needs the permissions Zone:Read and DNS:Edit for the zone (My Profile, API Tokens).';
/** "The record already exists", "An identical record already exists". */
const existsAlready = [81057, 81058];
const zones = z.array(z.object({ id: z.string(), name: z.string(), status: z.string().optional() }));
type CloudflareZone = z.infer<typeof zones>[number];
const records = z.array(z.object({ id: z.string(), content: z.string() }));
const errors = z.object({ errors: z.array(z.object({ code: z.number(), message: z.string() })) });

export const cloudflare: DnsProviderType<z.infer<typeof config>> = {
  type: 'cloudflare',
  title,
  config,
  plain: 'api_token',
  create: ({ api_token, base_url }, context) => {
    const token = new Secret(api_token);
    const api = jsonApi({
      context,
      title,
      baseUrl: base_url ?? 'https://api.cloudflare.com/client/v4',
      permission,
      secrets: [token],
      wordsOf,
      authorize: () => ({ Authorization: `Bearer ${token.expose()}` }),
    });
    const recent = new RecentZones<CloudflareZone>(context.world);
    return recordListProvider(async (record, signal) => {
      const path = `/zones/${await zoneId(api, recent, record, signal)}/dns_records`;
      const { name } = record;
      return {
        list: async () => {
          const purpose = `list the TXT records of ${name}`;
          const query = { type: 'TXT', name, per_page: 100 };
          const found = await pages(api, records, { method: 'GET', path, purpose, query }, signal);
          return found.map(({ id, content }) => ({ id, value: unquoteTxt(content) }));
        },
        create: async (value) => {
          const json = { type: 'TXT', name, content: quoteTxt(value), ttl: 60 };
          const purpose = `create the TXT record ${name}`;
          const answer = await api.send({ method: 'POST', path, purpose, json, accept: [400, 409] }, signal);
          if (answer.status < 300) return api.read(resultOf(z.object({ id: z.string() })), answer).result.id;
          if (codesOf(answer).some((code) => existsAlready.includes(code))) return undefined;
          throw api.refusal(answer);
        },
        delete: async (id) => {
          const purpose = `delete the TXT record ${name}`;
          await api.send({ method: 'DELETE', path: `${path}/${id}`, purpose, accept: [404] }, signal);
        },
      };
    });
  },
};

async function zoneId(
  api: JsonApi,
  recent: RecentZones<CloudflareZone>,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<string> {
  const asked = new Map<string, readonly CloudflareZone[]>();
  for (const name of zoneCandidates(record)) {
    const query = { name, per_page: 50 };
    const request: ApiRequest = { method: 'GET', path: '/zones', purpose: 'list the zones', query };
    const named =
      recent.get(name) ?? (await pages(api, zones, request, signal)).filter((zone) => zone.name === name);
    asked.set(name, named);
    // An account can also hold the name as a zone that is pending or has moved away.
    const zone = named.find(({ status }) => status === 'active') ?? named[0];
    if (zone === undefined) continue;
    for (const [candidate, found] of asked) recent.set(candidate, found);
    return zone.id;
  }
  throw zoneMissing(
    title,
    record,
    'Check that the domain is in the account and that the API token covers this zone.',
  );
}

/** All pages of a list, one after the other. */
async function pages<T>(
  api: JsonApi,
  schema: z.ZodType<T[]>,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await api.send({ ...request, query: { ...request.query, page } }, signal);
    const { result, result_info } = api.read(resultOf(schema), answer);
    all.push(...result);
    if (result.length === 0 || page >= (result_info?.total_pages ?? 1)) return all;
  }
}

function resultOf<T>(result: z.ZodType<T>) {
  const info = z.object({ total_pages: z.number().optional() });
  return z.object({ result, result_info: info.nullish() });
}

function codesOf({ body }: ApiAnswer): number[] {
  return errors.safeParse(body).data?.errors.map(({ code }) => code) ?? [];
}

function wordsOf(body: unknown): string | undefined {
  const listed = errors.safeParse(body).data?.errors;
  return listed?.map(({ code, message }) => `${message} [${code}]`).join('; ');
}
