/**
 * TXT records at Google Cloud DNS. A change names exactly the record set that it replaces, so Google rejects it if
 * another client changed the set meanwhile.
 */
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { encodePem } from '../../crypto/pem.ts';
import { type DnsContext, DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';
import { RecentZones } from '../resolver/recent-zones.ts';
import { replacedTxt, unquoteTxt } from '../resolver/txt-string.ts';
import { accountZone, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { bearerToken, type IssuedToken } from './bearer-token.ts';
import { type JsonApi, jsonApi } from './json-api.ts';
import { purposeOfChanges, zoneChangeProvider } from './zone-changes.ts';

/** The key file of a service account. Its other fields are not needed. */
const keyFile = z.object({
  client_email: z.string({ error: 'is missing; it must be the address of the service account' }),
  private_key: z
    .string({ error: 'is missing; it must be the private key of the service account' })
    .includes('-----BEGIN PRIVATE KEY-----', { error: 'must be a PEM private key (PKCS#8)' }),
  private_key_id: z.string().optional(),
  project_id: z.string().optional(),
  token_uri: apiUrl.optional(),
});

type KeyFile = z.infer<typeof keyFile>;

const config = z.strictObject({
  service_account: z.union(
    [
      keyFile,
      z.string().refine((text) => keyFile.safeParse(jsonOf(text)).success, {
        error: 'must be the JSON text of a key file, with client_email and private_key',
      }),
    ],
    {
      error:
        'must be the key file of a service account: its JSON text, or a mapping with client_email and private_key',
    },
  ),
  project: credential('the id of the project that has the zone').optional(),
  token_uri: apiUrl.optional(),
  base_url: apiUrl.optional(),
});

type Settings = z.infer<typeof config>;

const title = 'Google Cloud DNS';
const permission =
  'The service account needs the role DNS Administrator (roles/dns.admin) in the project, and the Cloud DNS API must be enabled there.';
const scope = 'https://www.googleapis.com/auth/ndev.clouddns.readwrite';
/** The set to delete has changed, or the set to add exists. */
const conflicts = [404, 409, 412];

/**
 * Version and algorithm of an RSA key in PKCS#8 (RFC 5208 §5, RFC 8017 §A.1), after a header with a two-byte length.
 */
const rsaBegins = Buffer.from('020100300d06092a864886f70d0101010500', 'hex');
const maxKeyLength = 16_384;

const zoneSchema = z.object({ name: z.string(), dnsName: z.string(), visibility: z.string().optional() });
type ManagedZone = z.infer<typeof zoneSchema>;
const setSchema = z.object({
  name: z.string(),
  type: z.string(),
  ttl: z.number(),
  rrdatas: z.array(z.string()).default([]),
});
type HeldSet = z.infer<typeof setSchema>;

/** Changes of many names go in one request. */
export const googleCloudDns: DnsProviderType<Settings> = {
  type: 'google-cloud-dns',
  title,
  config,
  create: (settings, context) => {
    const key = keyFile.parse(
      typeof settings.service_account === 'string'
        ? jsonOf(settings.service_account)
        : settings.service_account,
    );
    const project = settings.project ?? key.project_id;
    if (project === undefined) {
      throw new DnsProviderError(
        `${title}: project is missing; set it, because the key file has no project_id`,
      );
    }
    const api = cloudDns(settings, key, context);
    const root = `/dns/v1/projects/${encodeURIComponent(project)}/managedZones`;
    const recent = new RecentZones<ManagedZone>(context.world);
    return zoneChangeProvider<HeldSet>(context, title, async (record, signal) => {
      const id = await zoneId(api, root, recent, record, signal);
      const path = `${root}/${encodeURIComponent(id)}`;
      return {
        id,
        read: async (plain) => {
          const name = `${plain}.`;
          const request = { path: `${path}/rrsets`, purpose: `read the TXT records of ${plain}` };
          const query = { name, type: 'TXT' };
          const sets = await pages(api, 'rrsets', setSchema, { ...request, query }, signal);
          return sets.find((set) => set.name === name && set.type === 'TXT');
        },
        valuesOf: ({ rrdatas }) => rrdatas.map(unquoteTxt),
        withValues: (name, held, values) => {
          const rrdatas = replacedTxt(held?.rrdatas ?? [], values);
          return { name: `${name}.`, type: 'TXT', ttl: held?.ttl ?? 60, rrdatas };
        },
        apply: async (changes) => {
          const purpose = purposeOfChanges(changes);
          const deletions = changes.flatMap(({ before }) => before ?? []);
          const additions = changes.flatMap(({ after }) => after ?? []);
          const json = {
            ...(deletions.length > 0 && { deletions }),
            ...(additions.length > 0 && { additions }),
          };
          const answer = await api.send(
            { method: 'POST', path: `${path}/changes`, purpose, json, accept: conflicts },
            signal,
          );
          return answer.status >= 400 ? api.refusal(answer) : undefined;
        },
      };
    });
  },
};

/** The API with its tokens, obtained with the key of the service account (RFC 7523). */
function cloudDns(settings: Settings, key: KeyFile, context: DnsContext): JsonApi {
  const privateKey = new Secret(key.private_key);
  const lines = key.private_key.split('\n').map((line) => new Secret(line.trimEnd()));
  const tokenUri = settings.token_uri ?? key.token_uri ?? 'https://oauth2.googleapis.com/token';
  const common = { context, permission, secrets: [privateKey, ...lines], describeError };
  const oauth = jsonApi({ ...common, title: 'The Google login', baseUrl: tokenUri });
  const token = bearerToken(context.world, async (signal): Promise<IssuedToken> => {
    const { importPKCS8, SignJWT } = await import('jose');
    const refused = () =>
      new DnsProviderError(`${title}: private_key of the service account must be an RSA key in PKCS#8`);
    const pem = rsaKeyIn(privateKey.expose());
    if (pem === undefined) throw refused();
    const signer = await importPKCS8(pem, 'RS256').catch(() => {
      // The reason is dropped: the message of the parser may contain parts of the key.
      throw refused();
    });
    const now = Math.floor(context.world.now() / second);
    const assertion = await new SignJWT({ scope })
      .setProtectedHeader({
        alg: 'RS256',
        typ: 'JWT',
        ...(key.private_key_id && { kid: key.private_key_id }),
      })
      .setIssuer(key.client_email)
      .setAudience(tokenUri)
      .setIssuedAt(now)
      .setExpirationTime(now + 3600)
      .sign(signer);
    const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion };
    const answer = await oauth.send(
      { method: 'POST', path: tokenUri, purpose: 'issue a token', form },
      signal,
    );
    const issued = oauth.read(z.object({ access_token: z.string(), expires_in: z.number() }), answer);
    return { token: issued.access_token, lifetimeMs: issued.expires_in * second };
  });
  return jsonApi({
    ...common,
    title,
    baseUrl: settings.base_url ?? 'https://dns.googleapis.com',
    authorize: (_, signal) => token.headers(signal),
    renew: token.forget,
    isTransient: ({ status, body }) =>
      status === 403 && reasonsOf(body).some((reason) => /^(userR|r)ateLimitExceeded$/.test(reason)),
  });
}

async function zoneId(
  api: JsonApi,
  path: string,
  recent: RecentZones<ManagedZone>,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<string> {
  const known = recent.get(path);
  const zones =
    known ?? (await pages(api, 'managedZones', zoneSchema, { path, purpose: 'list the zones' }, signal));
  const open = zones
    .filter(({ visibility }) => visibility !== 'private')
    .map(({ name, dnsName }) => ({ id: name, name: dnsName }));
  const zone = accountZone(open, record);
  if (zone !== undefined) {
    recent.set(path, zones);
    return zone.id;
  }
  throw zoneMissing(
    title,
    record,
    'Check that the project has a public managed zone with that DNS name, and that project is right.',
  );
}

/** All pages of a list. */
async function pages<T>(
  api: JsonApi,
  field: string,
  schema: z.ZodType<T>,
  request: { readonly path: string; readonly purpose: string; readonly query?: Record<string, string> },
  signal: AbortSignal,
): Promise<T[]> {
  const page = z.object({ [field]: z.array(schema).default([]), nextPageToken: z.string().optional() });
  const all: T[] = [];
  let pageToken: string | undefined;
  do {
    const query = { ...request.query, ...(pageToken && { pageToken }) };
    const answer = api.read(page, await api.send({ ...request, method: 'GET', query }, signal));
    all.push(...(answer[field] as T[]));
    pageToken = answer.nextPageToken as string | undefined;
  } while (pageToken !== undefined && pageToken !== '');
  return all;
}

function reasonsOf(body: unknown): string[] {
  const reasons = z.object({ error: z.object({ errors: z.array(z.object({ reason: z.string() })) }) });
  return reasons.safeParse(body).data?.error.errors.map(({ reason }) => reason) ?? [];
}

/** Error texts of Google and of its login. */
function describeError(body: unknown): string | undefined {
  const resource = z.object({ error: z.object({ message: z.string() }) }).safeParse(body).data;
  if (resource !== undefined) return resource.error.message;
  const login = z
    .object({ error: z.string(), error_description: z.string().optional() })
    .safeParse(body).data;
  return login && `${login.error_description ?? ''} [${login.error}]`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema reports what is wrong.
    return undefined;
  }
}

/**
 * The key as PEM, or undefined if it is not an RSA key. OpenSSL completes other keys while it reads them, which takes
 * hours if their numbers are large.
 */
function rsaKeyIn(text: string): string | undefined {
  const [, base64 = ''] =
    /-----BEGIN PRIVATE KEY-----([^-]{1,22000})-----END PRIVATE KEY-----/.exec(text) ?? [];
  const der = Buffer.from(base64, 'base64');
  const isRsa = der.length <= maxKeyLength && der.subarray(4, 4 + rsaBegins.length).equals(rsaBegins);
  return isRsa ? encodePem('PRIVATE KEY', der) : undefined;
}
