/** TXT records at OVHcloud, by its API 1.0: requests are signed, and a zone is published by a step of its own. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { hour, second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import type { OutboundRequest } from '../../net/outbound-http.ts';
import type { DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { unquoteTxt } from '../resolver/txt-string.ts';
import { accountZone, relativeName, zoneCandidates, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type JsonApi, jsonApi } from './json-api.ts';
import { recordListProvider } from './record-list.ts';

const endpoints = {
  'ovh-eu': 'https://eu.api.ovh.com/1.0',
  'ovh-ca': 'https://ca.api.ovh.com/1.0',
  'ovh-us': 'https://api.us.ovhcloud.com/1.0',
} as const;

const config = z.strictObject({
  endpoint: z.enum(['ovh-eu', 'ovh-ca', 'ovh-us'], { error: 'must be ovh-eu, ovh-ca or ovh-us' }),
  application_key: credential('the application key from OVH'),
  application_secret: credential('the application secret from OVH'),
  consumer_key: credential('the consumer key, confirmed by a login'),
  base_url: apiUrl.optional(),
});

const title = 'OVH';
const permission =
  'The consumer key needs GET on /domain/zone and GET, POST and DELETE on /domain/zone/*, and must not have expired.';
const recordId = z.number();
const recordSchema = z.object({
  id: recordId,
  fieldType: z.string(),
  subDomain: z.string().nullish(),
  target: z.string(),
});

/** What signs a request, per OVH's "First Steps with the API": `$1$` and a SHA-1 in hex. `time` in seconds. */
export function ovhSignature(
  keys: { readonly applicationSecret: string; readonly consumerKey: string },
  { method, url, body = '' }: Pick<OutboundRequest, 'method' | 'url' | 'body'>,
  time: number,
): string {
  const signed = [keys.applicationSecret, keys.consumerKey, method, url, body.toString(), time].join('+');
  return `$1$${createHash('sha1').update(signed).digest('hex')}`;
}

export const ovh: DnsProviderType<z.infer<typeof config>> = {
  type: 'ovh',
  title: 'OVHcloud',
  config,
  create: (settings, context) => {
    const applicationSecret = new Secret(settings.application_secret);
    const consumerKey = new Secret(settings.consumer_key);
    const common = {
      context,
      title,
      baseUrl: settings.base_url ?? endpoints[settings.endpoint],
      permission,
      secrets: [applicationSecret, consumerKey, new Secret(settings.application_key)],
      wordsOf,
    };
    const clock = jsonApi(common);
    let offset: { readonly seconds: number; readonly until: number } | undefined;
    /** OVH's time in seconds: a signature with another one is refused. */
    const time = async (signal: AbortSignal): Promise<number> => {
      const now = context.world.now();
      if (offset === undefined || offset.until <= now) {
        const answer = await clock.send(
          { method: 'GET', path: '/auth/time', purpose: 'return the time' },
          signal,
        );
        const seconds = clock.read(z.number(), answer) - Math.floor(context.world.now() / second);
        offset = { seconds, until: now + hour };
      }
      return Math.floor(context.world.now() / second) + offset.seconds;
    };
    const api = jsonApi({
      ...common,
      authorize: async (request, signal) => {
        const at = await time(signal);
        const keys = { applicationSecret: applicationSecret.expose(), consumerKey: consumerKey.expose() };
        return {
          'X-Ovh-Application': settings.application_key,
          'X-Ovh-Consumer': consumerKey.expose(),
          'X-Ovh-Timestamp': String(at),
          'X-Ovh-Signature': ovhSignature(keys, request, at),
        };
      },
    });
    return recordListProvider(async (record, signal) => {
      const zone = await zoneName(api, record, signal);
      const zonePath = `/domain/zone/${encodeURIComponent(zone)}`;
      const path = `${zonePath}/record`;
      const { name } = record;
      const subDomain = relativeName(name, zone);
      return {
        list: async () => {
          const purpose = `list the TXT records of ${name}`;
          const query = { fieldType: 'TXT', subDomain };
          const ids = api.read(
            z.array(recordId),
            await api.send({ method: 'GET', path, purpose, query }, signal),
          );
          const found: { id: string; value: string }[] = [];
          for (const id of ids) {
            const answer = await api.send(
              { method: 'GET', path: `${path}/${id}`, purpose, accept: [404] },
              signal,
            );
            if (answer.status === 404) continue;
            const { target, fieldType, ...listed } = api.read(recordSchema, answer);
            if (fieldType !== 'TXT' || (listed.subDomain ?? '') !== subDomain) continue;
            found.push({ id: String(id), value: unquoteTxt(target) });
          }
          return found;
        },
        create: async (value) => {
          const json = { fieldType: 'TXT', subDomain, target: value, ttl: 60 };
          const purpose = `create the TXT record ${name}`;
          const answer = await api.send({ method: 'POST', path, purpose, json, accept: [409] }, signal);
          if (answer.status === 409) return undefined;
          return String(api.read(z.object({ id: recordId }), answer).id);
        },
        delete: async (id) => {
          const purpose = `delete the TXT record ${name}`;
          await api.send({ method: 'DELETE', path: `${path}/${id}`, purpose, accept: [404] }, signal);
        },
        publish: async () => {
          const purpose = `publish the zone ${zone}`;
          await api.send({ method: 'POST', path: `${zonePath}/refresh`, purpose }, signal);
        },
      };
    });
  },
};

async function zoneName(api: JsonApi, record: TxtRecord, signal: AbortSignal): Promise<string> {
  const purpose = 'list the zones';
  const answer = await api.send({ method: 'GET', path: '/domain/zone', purpose, accept: [403] }, signal);
  if (answer.status === 403) {
    // A consumer key may be limited to the records of one zone, and then may not list zones.
    for (const name of zoneCandidates(record)) {
      const path = `/domain/zone/${encodeURIComponent(name)}/record`;
      const query = { fieldType: 'TXT', subDomain: relativeName(record.name, name) };
      const tried = await api.send({ method: 'GET', path, purpose, query, accept: [403, 404] }, signal);
      if (tried.status === 200) return name;
    }
    throw api.refusal(answer);
  }
  const zones = api.read(z.array(z.string()), answer).map((name) => ({ name }));
  const zone = accountZone(zones, record);
  if (zone !== undefined) return zone.name;
  throw zoneMissing(
    title,
    record,
    'Check that the account of this consumer key has the DNS zone, and that endpoint is the right region.',
  );
}

function wordsOf(body: unknown): string | undefined {
  const said = z.object({ message: z.string(), errorCode: z.string().optional() }).safeParse(body).data;
  if (said === undefined) return undefined;
  return said.errorCode === undefined ? said.message : `${said.message} [${said.errorCode}]`;
}
