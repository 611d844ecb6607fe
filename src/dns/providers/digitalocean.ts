/** TXT records at DigitalOcean, through API v2. */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import type { DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { unquoteTxt } from '../resolver/txt-string.ts';
import { accountZone, relativeName, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type ApiRequest, type JsonApi, jsonApi } from './json-api.ts';
import { recordListProvider } from './record-list.ts';

const config = z.strictObject({
  api_token: credential('a personal access token of DigitalOcean'),
  base_url: apiUrl.optional(),
});

const title = 'DigitalOcean';
const permission =
  'The access token needs the scopes domain:read, domain:create, domain:update and domain:delete (or full access).';
const links = z.object({ pages: z.object({ next: z.string().optional() }).optional() }).optional();
const domains = z.object({ domains: z.array(z.object({ name: z.string() })), links });
const recordSchema = z.object({ id: z.number(), type: z.string(), name: z.string(), data: z.string() });
const records = z.object({ domain_records: z.array(recordSchema), links });

export const digitalocean: DnsProviderType<z.infer<typeof config>> = {
  type: 'digitalocean',
  title,
  config,
  plain: 'api_token',
  create: ({ api_token, base_url }, context) => {
    const token = new Secret(api_token);
    const api = jsonApi({
      context,
      title,
      baseUrl: base_url ?? 'https://api.digitalocean.com/v2',
      permission,
      secrets: [token],
      describeError: (body) => z.object({ message: z.string() }).safeParse(body).data?.message,
      authorize: () => ({ Authorization: `Bearer ${token.expose()}` }),
    });
    return recordListProvider(async (record, signal) => {
      const zone = await zoneName(api, record, signal);
      const path = `/domains/${encodeURIComponent(zone)}/records`;
      const name = relativeName(record.name, zone) || '@';
      return {
        list: async () => {
          const purpose = `list the TXT records of ${record.name}`;
          const query = { type: 'TXT', name: record.name, per_page: 200 };
          const answers = await pages(api, records, { method: 'GET', path, purpose, query }, signal);
          return answers
            .flatMap(({ domain_records }) => domain_records)
            .filter((listed) => listed.type === 'TXT' && listed.name === name)
            .map(({ id, data }) => ({ id: String(id), value: unquoteTxt(data) }));
        },
        create: async (value) => {
          const json = { type: 'TXT', name, data: value, ttl: 60 };
          const purpose = `create the TXT record ${record.name}`;
          const answer = await api.send({ method: 'POST', path, purpose, json, accept: [409] }, signal);
          if (answer.status === 409) return undefined;
          const made = api.read(z.object({ domain_record: z.object({ id: z.number() }) }), answer);
          return String(made.domain_record.id);
        },
        delete: async (id) => {
          const purpose = `delete the TXT record ${record.name}`;
          await api.send({ method: 'DELETE', path: `${path}/${id}`, purpose, accept: [404] }, signal);
        },
      };
    });
  },
};

async function zoneName(api: JsonApi, record: TxtRecord, signal: AbortSignal): Promise<string> {
  const query = { per_page: 200 };
  const request: ApiRequest = { method: 'GET', path: '/domains', purpose: 'list the domains', query };
  const listed = (await pages(api, domains, request, signal)).flatMap((answer) => answer.domains);
  const zone = accountZone(listed, record);
  if (zone !== undefined) return zone.name;
  throw zoneMissing(
    title,
    record,
    'Check that the domain is under Networking, Domains in the team of this access token.',
  );
}

/** All pages of a list; each links to the next one. */
async function pages<T extends { links?: z.infer<typeof links> }>(
  api: JsonApi,
  schema: z.ZodType<T>,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<T[]> {
  const all: T[] = [];
  const seen = new Set<string>();
  for (let next: ApiRequest | undefined = request; next !== undefined; ) {
    const page: T = api.read(schema, await api.send(next, signal));
    all.push(page);
    const path = page.links?.pages?.next;
    next =
      path === undefined || seen.has(path) ? undefined : { method: 'GET', path, purpose: request.purpose };
    if (path !== undefined) seen.add(path);
  }
  return all;
}
