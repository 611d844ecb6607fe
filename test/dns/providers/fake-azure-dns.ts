/** A fake of Azure DNS, limited to TXT records, with the login of a tenant. */
import { createHash } from 'node:crypto';
import { azureDns } from '../../../src/dns/providers/azure-dns.ts';
import { type FakeApi, type FakeProvider, wholeName } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';

const secret = 'azure~secret.4711/+';
const tenant = '11111111-2222-3333-4444-555555555555';
const group = '/subscriptions/sub-1/resourceGroups/dns%20group/providers/Microsoft.Network/dnsZones';

type Config = {
  tenant_id: string;
  client_id: string;
  client_secret: string;
  subscription_id: string;
  resource_group: string;
  zone_name?: string | undefined;
  base_url?: string | undefined;
  login_url?: string | undefined;
};

const error = (status: number, message: string, code = 'AuthorizationFailed'): FakeReply => ({
  status,
  json: { error: { code, message } },
});

const config = (url: string): Config => ({
  tenant_id: tenant,
  client_id: 'app-1',
  client_secret: secret,
  subscription_id: 'sub-1',
  resource_group: 'dns%20group'.replace('%20', '-'),
  base_url: url,
  login_url: url,
});

const path = group.replace('%20', '-');
/** Valid tokens; a test may clear them. */
export const azureTokens = new Set<string>();

export const fakeAzureDns: FakeApi<Config> = {
  type: azureDns,
  origin: 'https://management.azure.com',
  config,
  wrong: (url) => ({ ...config(url), client_secret: 'azure-wrong-0815' }),
  secrets: [secret, encodeURIComponent(secret), 'azure-wrong-0815', 'azure-access-token'],
  error,
  strange: { status: 200, json: { value: [{ id: 1 }] } },
  isLogin: (request) => request.path.startsWith(`/${tenant}/`),
  handler: (fake) => (request) => {
    if (request.path === `/${tenant}/oauth2/v2.0/token`) return login(fake, request);
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!azureTokens.has(token))
      return error(401, 'The access token is invalid.', 'InvalidAuthenticationToken');
    if (request.query.get('api-version') !== '2018-05-01')
      return error(400, 'no version', 'MissingApiVersion');
    if (request.path === path) return zonesPage(fake, request);
    const [, zone, relative] = /\/dnsZones\/([^/]+)\/TXT\/([^/]+)$/.exec(request.path) ?? [];
    if (zone === undefined || !fake.publicZones.includes(zone))
      return error(404, 'no zone', 'ParentResourceNotFound');
    return recordSet(fake, request, wholeName(relative, zone));
  },
};

function login(fake: FakeProvider, { body }: FakeRequest): FakeReply {
  const form = Object.fromEntries(new URLSearchParams(body));
  const isRight =
    form.grant_type === 'client_credentials' &&
    form.client_id === 'app-1' &&
    form.client_secret === secret &&
    form.scope === `${fake.url}/.default`;
  if (!isRight) {
    const error_description = `AADSTS7000215: Invalid client secret provided: ${form.client_secret}`;
    return { status: 401, json: { error: 'invalid_client', error_description } };
  }
  const token = `azure-access-token-${azureTokens.size + 1}`;
  azureTokens.add(token);
  return { status: 200, json: { token_type: 'Bearer', expires_in: 3599, access_token: token } };
}

function zonesPage(fake: FakeProvider, request: FakeRequest): FakeReply {
  const page = Number(request.query.get('$skiptoken') ?? '1');
  const { items, hasMore } = fake.page(fake.publicZones, page);
  const next = new URL(request.url);
  next.searchParams.set('$skiptoken', String(page + 1));
  const value = items.map((name) => ({ id: `x/${name}`, name, properties: { zoneType: 'Public' } }));
  return { status: 200, json: { value, ...(hasMore && { nextLink: next.href }) } };
}

function recordSet(fake: FakeProvider, request: FakeRequest, name: string): FakeReply {
  if (request.method === 'GET') {
    const held = fake.seenAt(name);
    if (held.length === 0) return error(404, `The resource record '${name}' does not exist`, 'NotFound');
    const TXTRecords = held.map((value) => ({ value: [value.slice(0, 5), value.slice(5)] }));
    const properties = { TTL: 1800, metadata: { owner: 'ops' }, fqdn: `${name}.`, TXTRecords };
    return { status: 200, json: { name, etag: etagOf(held), properties } };
  }
  fake.writing();
  const held = fake.values(name);
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers;
  const isStale =
    (ifMatch !== undefined && ifMatch !== etagOf(held)) || (ifNoneMatch === '*' && held.length > 0);
  if (isStale) return error(412, 'The Record set was modified by another request.', 'PreconditionFailed');
  if (ifMatch === undefined && ifNoneMatch === undefined)
    return error(400, 'the vault forgot the etag', 'Test');
  if (request.method === 'DELETE') {
    fake.set(name, []);
    return { status: held.length > 0 ? 200 : 204 };
  }
  const { properties } = JSON.parse(request.body) as {
    properties: { TTL: number; metadata?: { owner?: string }; TXTRecords: { value: string[] }[] };
  };
  const { TTL, metadata, TXTRecords } = properties;
  const isKept = held.length === 0 ? TTL === 60 : TTL === 1800 && metadata?.owner === 'ops';
  if (!isKept || TXTRecords.length === 0) return error(400, 'the vault changed more than it should', 'Test');
  fake.set(
    name,
    TXTRecords.map(({ value }) => value.join('')),
  );
  return { status: 200, json: { etag: etagOf(fake.values(name)), properties } };
}

function etagOf(values: readonly string[]): string {
  return createHash('sha1').update(values.join('\n')).digest('hex');
}
