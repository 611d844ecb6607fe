/**
 * TXT records at Amazon Route 53. One batch deletes exactly the record set that was read and creates the new one; Route
 * 53 rejects it if another client changed the set meanwhile.
 */
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { sigV4Headers } from '../../net/aws-signature.ts';
import { type DnsContext, DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';
import { RecentZones } from '../resolver/recent-zones.ts';
import { replacedTxt, unquoteTxt } from '../resolver/txt-string.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type ApiAnswer, type JsonApi, jsonApi, pause } from './json-api.ts';
import { assertXml, elementsOf, escapeXml, textOf } from './route53-xml.ts';
import { type HostedZone, nameIn, title, version, xmlOf, zoneId } from './route53-zones.ts';
import { purposeOfChanges, type SetChange, zoneChangeProvider } from './zone-changes.ts';

const config = z.strictObject({
  access_key_id: credential('an AWS access key id'),
  secret_access_key: credential('the secret access key that belongs to access_key_id'),
  session_token: credential('the session token of temporary credentials').optional(),
  region: credential('the region to sign for, such as us-east-1').optional(),
  hosted_zone_id: z
    .string()
    .regex(/^(\/hostedzone\/)?[A-Z0-9]{1,32}$/, {
      error: 'must be the id of a hosted zone, such as Z0123456789ABC',
    })
    .optional(),
  base_url: apiUrl.optional(),
});

const permission =
  'The credentials need route53:ListHostedZonesByName, and for the hosted zone route53:ListResourceRecordSets, route53:ChangeResourceRecordSets (CREATE and DELETE of TXT) and route53:GetChange.';
const transient = ['Throttling', 'ThrottlingException', 'PriorRequestNotComplete', 'PriorRequestIncomplete'];
const polls = 12;
const firstPoll = 5 * second;
const maxPoll = 20 * second;

type HeldSet = { readonly ttl: string; readonly data: readonly string[] };

/** Changes of many names go in one batch. */
export const route53: DnsProviderType<z.infer<typeof config>> = {
  type: 'route53',
  title: 'Amazon Route 53',
  config,
  create: (settings, context) => {
    const secretKey = new Secret(settings.secret_access_key);
    const session = settings.session_token === undefined ? undefined : new Secret(settings.session_token);
    const scope = { region: settings.region ?? 'us-east-1', service: 'route53' };
    const api = jsonApi({
      context,
      title,
      baseUrl: settings.base_url ?? 'https://route53.amazonaws.com',
      permission,
      secrets: [secretKey, ...(session === undefined ? [] : [session])],
      describeError,
      decode: assertXml,
      isTransient: (answer) => answer.status >= 400 && transient.includes(codeOf(answer) ?? ''),
      authorize: (request) =>
        sigV4Headers(
          request,
          {
            accessKeyId: settings.access_key_id,
            secretAccessKey: secretKey.expose(),
            sessionToken: session?.expose(),
          },
          scope,
          context.world.now(),
        ),
    });
    const zones = new RecentZones<HostedZone>(context.world);
    /** Pending changes by record, until they are known to be in sync. */
    const pending = new Map<string, string>();
    const keyOf = ({ name, value }: Pick<TxtRecord, 'name' | 'value'>) => `${name} ${value}`;
    const operations = zoneChangeProvider<HeldSet>(context, title, async (record, signal) => {
      const id =
        settings.hosted_zone_id?.replace('/hostedzone/', '') ?? (await zoneId(api, zones, record, signal));
      const path = `${version}/hostedzone/${id}/rrset`;
      return {
        id,
        read: (name) => read(api, path, name, signal),
        valuesOf: ({ data }) => data.map(unquoteTxt),
        withValues: (_, held, values) => ({
          ttl: held?.ttl ?? '60',
          data: replacedTxt(held?.data ?? [], values),
        }),
        apply: async (changes) => {
          const answer = await api.send(
            {
              method: 'POST',
              path: `${path}/`,
              purpose: purposeOfChanges(changes),
              xml: changeBatch(changes),
              accept: [400],
            },
            signal,
          );
          if (answer.status === 400) {
            if (codeOf(answer) === 'InvalidChangeBatch') return api.refusal(answer);
            throw api.refusal(answer);
          }
          const change = textOf(xmlOf(api, answer), 'Id')?.replace('/change/', '');
          for (const { name, before, after } of changes) {
            for (const data of before?.data ?? []) pending.delete(keyOf({ name, value: unquoteTxt(data) }));
            for (const data of change === undefined ? [] : (after?.data ?? [])) {
              pending.set(keyOf({ name, value: unquoteTxt(data) }), change ?? '');
            }
          }
          return undefined;
        },
      };
    });
    return {
      ...operations,
      settle: async (records, signal) => {
        const changes = new Set(records.flatMap((record) => pending.get(keyOf(record)) ?? []));
        for (const change of changes) await inSync(api, context, change, signal);
        for (const record of records) pending.delete(keyOf(record));
      },
    };
  },
};

async function read(
  api: JsonApi,
  path: string,
  name: string,
  signal: AbortSignal,
): Promise<HeldSet | undefined> {
  const query = { name: `${name}.`, type: 'TXT', maxitems: 1 };
  const purpose = `read the TXT records of ${name}`;
  const xml = xmlOf(api, await api.send({ method: 'GET', path, purpose, query }, signal));
  // The list starts at the name and continues with other names.
  const set = elementsOf(xml, 'ResourceRecordSet').find(
    (one) => nameIn(one) === name && textOf(one, 'Type') === 'TXT',
  );
  if (set === undefined) return undefined;
  const data = elementsOf(set, 'ResourceRecord').map((one) => textOf(one, 'Value') ?? '');
  return { ttl: textOf(set, 'TTL') ?? '60', data };
}

function changeBatch(changes: readonly SetChange<HeldSet>[]): string {
  const change = (action: string, name: string, set: HeldSet | undefined) => {
    if (set === undefined) return '';
    const records = set.data.map(
      (data) => `<ResourceRecord><Value>${escapeXml(data)}</Value></ResourceRecord>`,
    );
    return (
      `<Change><Action>${action}</Action><ResourceRecordSet><Name>${escapeXml(name)}.</Name><Type>TXT</Type>` +
      `<TTL>${set.ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet></Change>`
    );
  };
  const all = changes.map(
    ({ name, before, after }) => change('DELETE', name, before) + change('CREATE', name, after),
  );
  return (
    '<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/">' +
    `<ChangeBatch><Changes>${all.join('')}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`
  );
}

/**
 * Waits until all servers of Route 53 have the change, usually within a minute. Timeouts, missing permissions and
 * failures are ignored, because the propagation check follows.
 */
async function inSync(api: JsonApi, context: DnsContext, change: string, signal: AbortSignal): Promise<void> {
  const path = `${version}/change/${change}`;
  const purpose = 'return the status of the change';
  // An account may send five requests per second, and many orders may be waiting.
  for (let poll = 0, wait = firstPoll; poll < polls; poll += 1, wait = Math.min(1.5 * wait, maxPoll)) {
    await pause(context, title, wait, signal);
    try {
      const answer = await api.send({ method: 'GET', path, purpose, accept: [403, 404] }, signal);
      if (answer.status >= 400 || textOf(xmlOf(api, answer), 'Status') !== 'PENDING') return;
    } catch (error) {
      if (signal.aborted || !(error instanceof DnsProviderError)) throw error;
      context.log.debug({ err: error, change }, 'failed to query a change; retrying');
    }
  }
}

function codeOf({ body }: ApiAnswer): string | undefined {
  if (typeof body !== 'string') return undefined;
  return textOf(body, 'Code') ?? (body.includes('<InvalidChangeBatch') ? 'InvalidChangeBatch' : undefined);
}

function describeError(body: unknown): string | undefined {
  if (typeof body !== 'string') return undefined;
  const code = textOf(body, 'Code');
  const messages = elementsOf(body, 'Message').flatMap((one) => textOf(`<m>${one}</m>`, 'm') ?? []);
  return `${messages.join(' ')}${code === undefined ? '' : ` [${code}]`}`;
}
