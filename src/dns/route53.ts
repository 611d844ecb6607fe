/**
 * TXT records at Amazon Route 53. A set is replaced by deleting exactly the one that was read and creating the new one
 * in one batch, which Route 53 refuses where somebody changed the set in between.
 */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { Secret } from '../base/secret.ts';
import { zoneCandidates, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { plainName } from './dns-name.ts';

import type { DnsContext, DnsProviderType, TxtRecord } from './dns-provider.ts';
import { type ApiAnswer, type JsonApi, jsonApi, pause } from './json-api.ts';
import { recordSetProvider } from './record-set.ts';
import { assertXml, elementsOf, escapeXml, textOf } from './route53-xml.ts';
import { sigV4Headers } from './sigv4.ts';
import { quoteTxt, unquoteTxt } from './txt-string.ts';

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

const title = 'Route 53';
const permission =
  'The credentials need route53:ListHostedZonesByName, and for the hosted zone route53:ListResourceRecordSets, route53:ChangeResourceRecordSets (CREATE and DELETE of TXT) and route53:GetChange.';
const version = '/2013-04-01';
const transient = ['Throttling', 'ThrottlingException', 'PriorRequestNotComplete', 'PriorRequestIncomplete'];
const polls = 40;
const pollPause = 3 * second;

type HeldSet = { readonly ttl: string; readonly data: readonly string[] };

/** State: the set as Route 53 has it; undefined where there is none. */
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
      wordsOf,
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
    return recordSetProvider<HeldSet | undefined>(context, title, async (record, signal) => {
      const zone =
        settings.hosted_zone_id?.replace('/hostedzone/', '') ?? (await zoneId(api, record, signal));
      const path = `${version}/hostedzone/${zone}/rrset`;
      const replace = async (before: HeldSet | undefined, after: HeldSet | undefined) => {
        const xml = changeBatch(record.name, before, after);
        const purpose = `change the TXT records of ${record.name}`;
        const answer = await api.send(
          { method: 'POST', path: `${path}/`, purpose, xml, accept: [400] },
          signal,
        );
        if (answer.status === 400) {
          if (codeOf(answer) === 'InvalidChangeBatch') return api.refusal(answer);
          throw api.refusal(answer);
        }
        if (after !== undefined) await inSync(api, context, answer, signal);
        return undefined;
      };
      return {
        read: async () => {
          const held = await read(api, path, record, signal);
          return { values: held?.data.map(unquoteTxt) ?? [], state: held };
        },
        add: (value, { state }) =>
          replace(state, { ttl: state?.ttl ?? '60', data: [...(state?.data ?? []), quoteTxt(value)] }),
        remove: (value, { state }) => {
          const rest = state?.data.filter((data) => unquoteTxt(data) !== value) ?? [];
          return replace(state, rest.length === 0 ? undefined : { ttl: state?.ttl ?? '60', data: rest });
        },
      };
    });
  },
};

async function zoneId(api: JsonApi, record: TxtRecord, signal: AbortSignal): Promise<string> {
  for (const candidate of zoneCandidates(record)) {
    let query: Record<string, string | number> | undefined = { dnsname: `${candidate}.`, maxitems: 100 };
    while (query !== undefined) {
      const purpose = 'list the hosted zones';
      const answer = await api.send(
        { method: 'GET', path: `${version}/hostedzonesbyname`, purpose, query },
        signal,
      );
      const xml = xmlOf(api, answer);
      const named = elementsOf(xml, 'HostedZone').filter((zone) => nameIn(zone) === candidate);
      const zone = named.find((one) => textOf(one, 'PrivateZone') !== 'true');
      const id = zone && textOf(zone, 'Id');
      if (id !== undefined) return id.replace('/hostedzone/', '');
      // Zones come in the order of their names: those of this name may go on on the next page.
      const next = plainName(textOf(xml, 'NextDNSName') ?? '');
      query =
        textOf(xml, 'IsTruncated') === 'true' && next === candidate
          ? { ...query, hostedzoneid: (textOf(xml, 'NextHostedZoneId') ?? '').replace('/hostedzone/', '') }
          : undefined;
    }
  }
  throw zoneMissing(
    title,
    record,
    'Check that the account of these credentials has a public hosted zone of that name, or give hosted_zone_id.',
  );
}

async function read(
  api: JsonApi,
  path: string,
  { name }: TxtRecord,
  signal: AbortSignal,
): Promise<HeldSet | undefined> {
  const query = { name: `${name}.`, type: 'TXT', maxitems: 1 };
  const purpose = `read the TXT records of ${name}`;
  const xml = xmlOf(api, await api.send({ method: 'GET', path, purpose, query }, signal));
  // The list begins at the name and goes on with others.
  const set = elementsOf(xml, 'ResourceRecordSet').find(
    (one) => nameIn(one) === name && textOf(one, 'Type') === 'TXT',
  );
  if (set === undefined) return undefined;
  const data = elementsOf(set, 'ResourceRecord').map((one) => textOf(one, 'Value') ?? '');
  return { ttl: textOf(set, 'TTL') ?? '60', data };
}

function changeBatch(name: string, before: HeldSet | undefined, after: HeldSet | undefined): string {
  const change = (action: string, set: HeldSet | undefined) => {
    if (set === undefined) return '';
    const records = set.data.map(
      (data) => `<ResourceRecord><Value>${escapeXml(data)}</Value></ResourceRecord>`,
    );
    return (
      `<Change><Action>${action}</Action><ResourceRecordSet><Name>${escapeXml(name)}.</Name><Type>TXT</Type>` +
      `<TTL>${set.ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet></Change>`
    );
  };
  return (
    '<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/">' +
    `<ChangeBatch><Changes>${change('DELETE', before)}${change('CREATE', after)}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`
  );
}

/** Waits until all servers of Route 53 have the change. One that takes very long is left to the look at the DNS itself. */
async function inSync(
  api: JsonApi,
  context: DnsContext,
  changed: ApiAnswer,
  signal: AbortSignal,
): Promise<void> {
  let xml = xmlOf(api, changed);
  const path = `${version}/change/${(textOf(xml, 'Id') ?? '').replace('/change/', '')}`;
  for (let poll = 0; textOf(xml, 'Status') === 'PENDING' && poll < polls; poll += 1) {
    await pause(context, title, pollPause, signal);
    const purpose = 'tell whether the change is in sync';
    const answer = await api.send({ method: 'GET', path, purpose, accept: [403] }, signal);
    if (answer.status === 403) return;
    xml = xmlOf(api, answer);
  }
}

/** Names may have octal escapes, `\052` for a star. */
function nameIn(element: string): string {
  const name = textOf(element, 'Name') ?? '';
  return plainName(name.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))));
}

function xmlOf(api: JsonApi, answer: ApiAnswer): string {
  return api.read(z.string(), answer);
}

function codeOf({ body }: ApiAnswer): string | undefined {
  if (typeof body !== 'string') return undefined;
  return textOf(body, 'Code') ?? (body.includes('<InvalidChangeBatch') ? 'InvalidChangeBatch' : undefined);
}

function wordsOf(body: unknown): string | undefined {
  if (typeof body !== 'string') return undefined;
  const code = textOf(body, 'Code');
  const messages = elementsOf(body, 'Message').flatMap((one) => textOf(`<m>${one}</m>`, 'm') ?? []);
  return `${messages.join(' ')}${code === undefined ? '' : ` [${code}]`}`;
}
