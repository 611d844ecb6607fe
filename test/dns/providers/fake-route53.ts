/** A fake of Amazon Route 53's API of 2013-04-01, limited to TXT records: XML, signed requests, and delayed changes. */
import { route53 } from '../../../src/dns/providers/route53.ts';
import { elementsOf, escapeXml, textOf } from '../../../src/dns/providers/route53-xml.ts';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import type { FakeApi, FakeProvider } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';
import { isAwsSigned } from './aws-signature.ts';

const keys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+secret',
  sessionToken: 'session/Token+4711==',
};

type Config = {
  access_key_id: string;
  secret_access_key: string;
  session_token?: string | undefined;
  region?: string | undefined;
  hosted_zone_id?: string | undefined;
  base_url?: string | undefined;
};

const xml = (status: number, text: string): FakeReply => ({
  status,
  text: `<?xml version="1.0"?>\n${text}`,
  headers: { 'Content-Type': 'text/xml' },
});

export const route53Error = (status: number, message: string, code = 'AccessDenied'): FakeReply =>
  xml(
    status,
    `<ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${escapeXml(message)}</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
  );

const config = (url: string): Config => ({
  access_key_id: keys.accessKeyId,
  secret_access_key: keys.secretAccessKey,
  session_token: keys.sessionToken,
  base_url: url,
});

/** TTLs of the sets created by a change; existing ones have 300. */
type Ttls = Map<string, string>;

function ttlOf(ttls: Ttls, name: string): string {
  return ttls.get(name) ?? '300';
}

export const fakeRoute53: FakeApi<Config> = {
  type: route53,
  origin: 'https://route53.amazonaws.com',
  config,
  wrong: (url) => ({ ...config(url), secret_access_key: 'aws-wrong-0815' }),
  secrets: [keys.secretAccessKey, keys.sessionToken, 'aws-wrong-0815'],
  error: route53Error,
  strange: { status: 200, json: { not: 'XML' } },
  handler: (fake) => {
    const pending = new Set<string>();
    const ttls: Ttls = new Map();
    return (request) => {
      if (!isAwsSigned(request, keys, { region: 'us-east-1', service: 'route53' })) {
        const canonical = `x-amz-security-token:${request.headers['x-amz-security-token']}`;
        return route53Error(403, `The signature does not match: ${canonical}`, 'SignatureDoesNotMatch');
      }
      const { path, method } = request;
      if (path === '/2013-04-01/hostedzonesbyname') return zonesPage(fake, request);
      const change = /^\/2013-04-01\/change\/(\w+)$/.exec(path)?.[1];
      if (change !== undefined) {
        const status = pending.delete(change) ? 'PENDING' : 'INSYNC';
        return xml(200, `<GetChangeResponse>${changeInfo(change, status)}</GetChangeResponse>`);
      }
      const zone = fake.zones[Number(/^\/2013-04-01\/hostedzone\/Z(\d+)\/rrset\/?$/.exec(path)?.[1])];
      // Amazon also returns private zones, which are not visible from outside.
      if (zone === undefined || zone.isPrivate)
        return route53Error(404, 'No hosted zone found', 'NoSuchHostedZone');
      if (method === 'GET') return setsPage(fake, request, ttls);
      const refusal = applied(fake, request.body, ttls);
      if (refusal !== undefined) return refusal;
      const id = `C${fake.version}`;
      pending.add(id);
      return xml(
        200,
        `<ChangeResourceRecordSetsResponse>${changeInfo(id, 'PENDING')}</ChangeResourceRecordSetsResponse>`,
      );
    };
  },
};

function changeInfo(id: string, status: string): string {
  return `<ChangeInfo><Id>/change/${id}</Id><Status>${status}</Status><SubmittedAt>2026-11-21T12:00:00Z</SubmittedAt></ChangeInfo>`;
}

function zonesPage(fake: FakeProvider, { query }: FakeRequest): FakeReply {
  const order = (name: string) => name.split('.').reverse().join('.');
  const all = fake.zones
    .map((zone, index) => ({ ...zone, id: `Z${index}` }))
    .sort((a, b) => order(a.name).localeCompare(order(b.name)) || a.id.localeCompare(b.id));
  const wanted = order((query.get('dnsname') ?? '').replace(/\.$/, ''));
  const from = query.get('hostedzoneid');
  const begin =
    from === null
      ? all.findIndex(({ name }) => order(name).localeCompare(wanted) >= 0)
      : all.findIndex(({ id }) => id === from);
  const rest = begin === -1 ? [] : all.slice(begin);
  const next = rest[fake.pageSize];
  const zones = rest
    .slice(0, fake.pageSize)
    .map(
      ({ id, name, isPrivate }) =>
        `<HostedZone><Id>/hostedzone/${id}</Id><Name>${name}.</Name><Config><Comment/><PrivateZone>${isPrivate}</PrivateZone></Config></HostedZone>`,
    );
  const more =
    next === undefined
      ? ''
      : `<NextDNSName>${next.name}.</NextDNSName><NextHostedZoneId>${next.id}</NextHostedZoneId>`;
  return xml(
    200,
    `<ListHostedZonesByNameResponse><HostedZones>${zones.join('\n')}</HostedZones><IsTruncated>${next !== undefined}</IsTruncated>${more}<MaxItems>100</MaxItems></ListHostedZonesByNameResponse>`,
  );
}

/** Like Route 53, the list begins at the requested set or the next one. */
function setsPage(fake: FakeProvider, { query }: FakeRequest, ttls: Ttls): FakeReply {
  const name = (query.get('name') ?? '').replace(/\.$/, '');
  const held = fake.seenAt(name);
  const sets =
    held.length === 0
      ? [setXml('zzz-another.example.com', ['"other"'], '300')]
      : [setXml(name, held.map(quoteTxt), ttlOf(ttls, name))];
  return xml(
    200,
    `<ListResourceRecordSetsResponse><ResourceRecordSets>${sets}</ResourceRecordSets><IsTruncated>true</IsTruncated></ListResourceRecordSetsResponse>`,
  );
}

function setXml(name: string, data: readonly string[], ttl: string): string {
  const records = data.map((one) => `<ResourceRecord><Value>${escapeXml(one)}</Value></ResourceRecord>`);
  return `<ResourceRecordSet><Name>${name.replace('_', '\\137')}.</Name><Type>TXT</Type><TTL>${ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet>`;
}

/** Applies all changes of the batch, or none and returns the error. */
function applied(fake: FakeProvider, body: string, ttls: Ttls): FakeReply | undefined {
  fake.writing();
  const before = fake.records;
  for (const change of elementsOf(body, 'Change')) {
    const name = (textOf(change, 'Name') ?? '').replace(/\.$/, '');
    const data = elementsOf(change, 'ResourceRecord').map((one) => unquoteTxt(textOf(one, 'Value') ?? ''));
    const held = fake.values(name);
    const action = textOf(change, 'Action');
    const isRight =
      action === 'CREATE'
        ? held.length === 0
        : data.join() === held.join() && textOf(change, 'TTL') === ttlOf(ttls, name);
    if (!isRight) {
      fake.records = before;
      return xml(
        400,
        `<InvalidChangeBatch><Messages><Message>Tried to ${action} what is another set by now</Message></Messages></InvalidChangeBatch>`,
      );
    }
    fake.set(name, action === 'CREATE' ? data : []);
    ttls.set(name, textOf(change, 'TTL') ?? '');
  }
  return undefined;
}
