/** A fake of Google Cloud DNS, limited to TXT records, with the login of service accounts. */
import { generateKeyPairSync, verify } from 'node:crypto';
import { decodeProtectedHeader, importSPKI, type JWTPayload, jwtVerify } from 'jose';
import { googleCloudDns } from '../../../src/dns/providers/google-cloud-dns.ts';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import type { FakeApi, FakeProvider } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';

const encoding = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048, ...encoding });
const other = generateKeyPairSync('rsa', { modulusLength: 2048, ...encoding });

type KeyFile = {
  type: string;
  project_id: string;
  private_key_id: string;
  private_key: string;
  client_email: string;
  token_uri: string;
};
type Config = Parameters<typeof googleCloudDns.create>[0];

const error = (status: number, message: string, reason = 'forbidden'): FakeReply => ({
  status,
  json: { error: { code: status, message, errors: [{ message, domain: 'global', reason }] } },
});

export const googleKeyFile = (url: string): KeyFile => ({
  type: 'service_account',
  project_id: 'project-1',
  private_key_id: 'key-1',
  private_key: privateKey,
  client_email: 'vault@project-1.iam.gserviceaccount.com',
  token_uri: `${url}/token`,
});

/** Valid tokens; a test may clear them. */
export const googleTokens = new Set<string>();

export const fakeGoogleCloudDns: FakeApi<Config> = {
  type: googleCloudDns,
  origin: 'https://dns.googleapis.com',
  config: (url) => ({ service_account: googleKeyFile(url), base_url: url }),
  wrong: (url) => ({
    service_account: { ...googleKeyFile(url), private_key: other.privateKey },
    base_url: url,
  }),
  secrets: [
    privateKey.split('\n')[1] ?? '',
    other.privateKey.split('\n')[1] ?? '',
    'ya29.google-access-token',
  ],
  error,
  strange: { status: 200, json: { managedZones: [{ id: 1 }] } },
  isLogin: ({ path }) => path === '/token',
  handler: (fake) => {
    const ttls: Ttls = new Map();
    return (request) => answer(fake, request, ttls);
  },
};

/** TTLs of the sets created by a change; existing ones have 300. */
type Ttls = Map<string, number>;

function answer(fake: FakeProvider, request: FakeRequest, ttls: Ttls): FakeReply {
  if (request.path === '/token') return login(request);
  const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  if (!googleTokens.has(token))
    return error(401, 'Request had invalid authentication credentials.', 'authError');
  const root = '/dns/v1/projects/project-1/managedZones';
  if (request.path === root) {
    const zones = fake.zones.map(({ name, isPrivate }, index) => ({
      name: `zone-${index}`,
      dnsName: `${name}.`,
      visibility: isPrivate ? 'private' : 'public',
    }));
    return listed(fake, request, 'managedZones', zones);
  }
  const [, index, rest] = /\/managedZones\/zone-(\d+)\/(rrsets|changes)$/.exec(request.path) ?? [];
  const zone = fake.zones[Number(index)];
  if (zone === undefined || zone.isPrivate) return error(404, 'The managed zone does not exist.', 'notFound');
  if (rest === 'changes' && request.method === 'POST') return change(fake, request, zone.name, ttls);
  const name = (request.query.get('name') ?? '').replace(/\.$/, '');
  const held = fake.seenAt(name);
  const set = { name: `${name}.`, type: 'TXT', ttl: ttls.get(name) ?? 300, rrdatas: held.map(quoteTxt) };
  return listed(fake, request, 'rrsets', held.length === 0 ? [] : [set]);
}

/** Checks of the assertion are asynchronous: a test does them with `checkedAssertion`. */
function login({ body }: FakeRequest): FakeReply {
  const form = Object.fromEntries(new URLSearchParams(body));
  const isGrant = form.grant_type === 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  if (!isGrant || !isSigned(form.assertion ?? '')) {
    return { status: 400, json: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } };
  }
  const token = `ya29.google-access-token-${googleTokens.size + 1}`;
  googleTokens.add(token);
  return { status: 200, json: { access_token: token, expires_in: 3599, token_type: 'Bearer' } };
}

function isSigned(assertion: string): boolean {
  const [header = '', payload = '', signature = ''] = assertion.split('.');
  return verify(
    'sha256',
    Buffer.from(`${header}.${payload}`),
    publicKey,
    Buffer.from(signature, 'base64url'),
  );
}

/** The claims of an assertion, verified as Google does. */
export async function checkedAssertion(
  assertion: string,
  audience: string,
): Promise<{ header: unknown; payload: JWTPayload }> {
  const currentDate = new Date('2026-11-21T12:00:00Z');
  const { payload } = await jwtVerify(assertion, await importSPKI(publicKey, 'RS256'), {
    audience,
    currentDate,
  });
  return { header: decodeProtectedHeader(assertion), payload };
}

function listed(
  fake: FakeProvider,
  { query }: FakeRequest,
  field: string,
  all: readonly unknown[],
): FakeReply {
  const page = Number(query.get('pageToken') ?? '1');
  const { items, hasMore } = fake.page(all, page);
  // Google omits empty lists.
  const json = {
    ...(items.length > 0 && { [field]: items }),
    ...(hasMore && { nextPageToken: String(page + 1) }),
  };
  return { status: 200, json };
}

type RecordSet = { name: string; type: string; ttl: number; rrdatas: string[] };

/** Applies all sets of the change, or none and returns the error. */
function change(fake: FakeProvider, { body }: FakeRequest, zone: string, ttls: Ttls): FakeReply {
  fake.writing();
  const { additions = [], deletions = [] } = JSON.parse(body) as {
    additions?: RecordSet[];
    deletions?: RecordSet[];
  };
  const names = new Set([...additions, ...deletions].map((set) => set.name));
  const of = (sets: readonly RecordSet[], name: string) => sets.find((set) => set.name === name);
  for (const absolute of names) {
    const name = absolute.replace(/\.$/, '');
    if (name !== zone && !name.endsWith(`.${zone}`)) return error(400, 'Invalid value', 'invalid');
    const [added, deleted, held] = [of(additions, absolute), of(deletions, absolute), fake.values(name)];
    if (deleted !== undefined && held.length === 0)
      return error(404, 'The resource record set does not exist.', 'notFound');
    const ttl = ttls.get(name) ?? 300;
    const isSame = deleted?.ttl === ttl && deleted.rrdatas.map(unquoteTxt).join() === held.join();
    if (deleted !== undefined && !isSame) return error(412, 'Precondition not met.', 'conditionNotMet');
    if (added !== undefined && deleted === undefined && held.length > 0) {
      return error(409, 'The resource already exists', 'alreadyExists');
    }
    if (added !== undefined && added.ttl !== (deleted === undefined ? 60 : ttl))
      return error(400, 'ttl', 'invalid');
  }
  for (const absolute of names) {
    const [name, added] = [absolute.replace(/\.$/, ''), of(additions, absolute)];
    fake.set(name, added?.rrdatas.map(unquoteTxt) ?? []);
    if (added !== undefined) ttls.set(name, added.ttl);
  }
  return { status: 200, json: { id: '1', status: 'pending', additions, deletions } };
}
