/** Target `synology`: a certificate of Synology DSM, by the calls that its control panel uses. */
import { z } from 'zod';
import { minute } from '../base/duration.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import {
  type Installed,
  type Material,
  named,
  type TargetContext,
  TargetError,
  type TargetType,
} from './target.ts';
import { apiUrl, credential, send, type TargetResponse } from './target-http.ts';

const config = z.strictObject({
  url: apiUrl,
  account: credential('the name of an administrator'),
  password: z.string({ error: 'is missing; it must be the password of the administrator' }).min(1).max(1000),
  device_id: credential('the id of a device that the second factor remembers').optional(),
  description: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^\p{C}"\\]+$/u, { error: 'must not contain quotes, backslashes or control characters' })
    .default('{certificate}'),
  as_default: z.boolean().default(false),
  ca: trustedCa,
});

/**
 * `description`: the certificate with this description is replaced; `as_default`: services without a choice present it.
 * `ca` replaces the public CAs: those of the certificate that the device has now, and of the new one.
 */
export type SynologyTargetConfig = z.output<typeof config>;

const answerSchema = z.object({
  success: z.boolean(),
  data: z.unknown().optional(),
  error: z.object({ code: z.number() }).optional(),
});
const sessionSchema = z.object({ sid: z.string(), synotoken: z.string().optional() });
const listSchema = z.object({
  certificates: z.array(
    z.object({ id: z.string(), desc: z.string(), is_default: z.boolean().default(false) }),
  ),
});

/** Codes that say what to do, of SYNO.API.Auth and of all calls. */
const meanings: Readonly<Record<number, string>> = {
  105: 'the account must be an administrator',
  400: 'wrong account or password',
  401: 'the account is disabled',
  402: 'the account must be an administrator',
  403: 'the account needs a second factor: set device_id',
  404: 'the second factor was wrong',
  407: 'the address of the vault is blocked',
  5510: 'the certificate is not valid',
  5511: 'the certificate has expired',
};

type Session = { readonly sid: string; readonly token: string | undefined };

export const synologyTarget: TargetType<SynologyTargetConfig> = {
  type: 'synology',
  title: 'a Synology NAS (DSM 7)',
  config,
  host: ({ url }) => new URL(url).host,
  destination: ({ description }, certificate) => named(description, certificate),
  patience: () => 2 * minute,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => install(settings, context, material, signal),
  }),
};

async function install(
  settings: SynologyTargetConfig,
  context: TargetContext,
  material: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const session = await signIn(settings, context, signal);
  try {
    const desc = named(settings.description, material.name);
    const { certificates } = await call(
      settings,
      context,
      session,
      listSchema,
      {
        purpose: 'list the certificates',
        form: { api: 'SYNO.Core.Certificate.CRT', method: 'list', version: '1' },
      },
      signal,
    );
    const old = certificates.find((one) => one.desc === desc);
    // An import without the flag may take it from the default certificate.
    const isDefault = settings.as_default || old?.is_default === true;
    const key = material.privateKey.expose();
    const parts: Part[] = [
      { name: 'key', file: 'privkey.pem', value: key },
      { name: 'cert', file: 'cert.pem', value: material.certificate },
      ...(material.chain === '' ? [] : [{ name: 'inter_cert', file: 'chain.pem', value: material.chain }]),
      { name: 'id', value: old?.id ?? '' },
      { name: 'desc', value: desc },
      ...(isDefault ? [{ name: 'as_default', value: 'true' }] : []),
    ];
    await call(
      settings,
      context,
      session,
      z.unknown(),
      {
        purpose: 'import the certificate',
        query: { api: 'SYNO.Core.Certificate', method: 'import', version: '1' },
        ...{ parts, key },
      },
      signal,
    );
  } finally {
    await signOut(settings, context, session, signal);
  }
  return {};
}

async function signIn(
  settings: SynologyTargetConfig,
  context: TargetContext,
  signal: AbortSignal,
): Promise<Session> {
  const { account, password: passwd, device_id } = settings;
  const { sid, synotoken } = await call(
    settings,
    context,
    undefined,
    sessionSchema,
    {
      purpose: 'sign in',
      form: {
        ...{ api: 'SYNO.API.Auth', method: 'login', version: '6', format: 'sid', enable_syno_token: 'yes' },
        ...{ account, passwd },
        ...(device_id !== undefined && { device_id }),
      },
    },
    signal,
  );
  return { sid, token: synotoken };
}

/** A session that is not ended expires after a while. */
async function signOut(
  settings: SynologyTargetConfig,
  context: TargetContext,
  session: Session,
  signal: AbortSignal,
): Promise<void> {
  const form = { api: 'SYNO.API.Auth', method: 'logout', version: '6' };
  await call(settings, context, session, z.unknown(), { purpose: 'sign out', form }, signal).catch(
    () => undefined,
  );
}

type Part = { readonly name: string; readonly file?: string; readonly value: string };

type Call = {
  readonly purpose: string;
  readonly form?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly parts?: readonly Part[];
  /** The private key in the request. */
  readonly key?: string;
};

/** The data of a successful answer; DSM reports failures with status 200. */
async function call<T>(
  { url, ca, password }: SynologyTargetConfig,
  context: TargetContext,
  session: Session | undefined,
  schema: z.ZodType<T>,
  { purpose, form = {}, query = {}, parts, key }: Call,
  signal: AbortSignal,
): Promise<T> {
  const place = new URL(`${url}/webapi/entry.cgi`);
  for (const [name, value] of Object.entries(query)) place.searchParams.set(name, value);
  if (session !== undefined && parts !== undefined) place.searchParams.set('_sid', session.sid);
  const [type, body] =
    parts === undefined
      ? [
          'application/x-www-form-urlencoded',
          new URLSearchParams({ ...form, ...(session && { _sid: session.sid }) }).toString(),
        ]
      : multipart(context.world.randomBytes(16).toString('hex'), parts);
  const headers = {
    'Content-Type': type,
    ...(session?.token !== undefined && { 'X-SYNO-TOKEN': session.token }),
  };
  const secrets = [password, session?.sid, session?.token, key].filter((one) => one !== undefined);
  const request = { method: 'POST' as const, url: place.href, headers, body, ca, purpose, secrets };
  return dataOf(schema, await send(context, request, signal), purpose);
}

function dataOf<T>(schema: z.ZodType<T>, { json }: TargetResponse, purpose: string): T {
  const answer = answerSchema.safeParse(json).data;
  if (answer?.success === false) {
    const code = answer.error?.code;
    const meaning = code === undefined ? undefined : meanings[code];
    throw new TargetError(
      `failed to ${purpose}: DSM answered with ${code === undefined ? 'an error' : `error ${code}`}${meaning === undefined ? '' : ` (${meaning})`}`,
    );
  }
  const data = schema.safeParse(answer?.data);
  if (answer === undefined || !data.success)
    throw new TargetError(`failed to ${purpose}: unexpected response`);
  return data.data;
}

/** RFC 7578. The boundary occurs in no part, as it is random. */
function multipart(random: string, parts: readonly Part[]): [type: string, body: string] {
  const boundary = `vault-${random}`;
  const texts = parts.map(({ name, file, value }) => {
    const disposition = `form-data; name="${name}"${file === undefined ? '' : `; filename="${file}"`}`;
    const type = file === undefined ? '' : '\r\nContent-Type: application/octet-stream';
    return `--${boundary}\r\nContent-Disposition: ${disposition}${type}\r\n\r\n${value}\r\n`;
  });
  return [`multipart/form-data; boundary=${boundary}`, `${texts.join('')}--${boundary}--\r\n`];
}
