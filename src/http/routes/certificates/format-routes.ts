/** Downloads in other formats: one route per file name, with the rules of artifacts. */
import type { KeystoreEncryption } from '../../../crypto/bundles/pkcs12-writer.ts';
import type { FormattedVersion } from '../../../domain/versions/format-downloads.ts';
import { type FormatName, formatNames, formats, type Keystore } from '../../../domain/versions/formats.ts';
import { requireRecordAllowance } from '../../auth/record-limit.ts';
import { artifactQuery, keystoreQuery } from '../../openapi/schemas.ts';
import { noneMatch } from '../../request/conditional-request.ts';
import { keystorePasswordHeader, keystorePasswordIn } from '../../request/keystore-password-header.ts';
import type { Reply } from '../../request/reply.ts';
import { type Call, type PlainType, type Route, route } from '../../request/route.ts';
import { unchanged, unchangedReply, type VersionQuery } from './unchanged-reply.ts';

const mediaTypes = {
  'combined.pem': 'application/x-pem-file',
  'certificate.der': 'application/pkix-cert',
  'keystore.p12': 'application/pkcs12',
  'archive.tar': 'application/x-tar',
} as const satisfies Record<FormatName, PlainType>;

const summaries: Readonly<Record<FormatName, string>> = {
  'combined.pem': 'Download combined.pem: the private key, then the full chain',
  'certificate.der': 'Download certificate.der: the certificate alone',
  'keystore.p12': 'Download keystore.p12: certificate, chain and private key as PKCS#12',
  'archive.tar': 'Download archive.tar: all files of one version',
};

const passwordDescription =
  "the password of the keystore, 1 to 128 characters in UTF-8, or percent-encoded after `UTF-8''`";

export const formatRoutes: readonly Route[] = formatNames.map((file) => {
  const { scope, keystore } = formats[file];
  const headers = ['ETag', 'Certificate-Version', ...(keystore === 'none' ? [] : ['Vary'])];
  return route({
    method: 'GET',
    path: `/api/v1/certificates/{name}/${file}`,
    id: `download_${file.replace(/[^a-z0-9]/g, '_')}`,
    summary: summaries[file],
    access: { kind: 'scope', scope },
    query: keystore === 'none' ? artifactQuery : keystoreQuery,
    ...(keystore !== 'none' && {
      requestHeaders: [
        {
          name: 'Keystore-Password',
          required: keystore === 'required',
          description:
            keystore === 'required'
              ? passwordDescription
              : `${passwordDescription}; adds keystore.p12 to the archive`,
        },
      ],
    }),
    replies: {
      200: {
        description: 'the file; recorded in the audit log',
        contentType: mediaTypes[file],
        headers: [...headers, 'Content-Disposition'],
      },
      304: unchangedReply('file', headers),
    },
    problems: [
      ...(['certificate_not_found', 'version_not_found', 'no_current_version'] as const),
      ...(formats[file].needsKey ? (['private_key_not_held'] as const) : []),
    ],
    handle: (call) => download(call, file),
  });
});

type FormatCall = Call<VersionQuery & { encryption?: KeystoreEncryption | undefined }>;

async function download(call: FormatCall, file: FormatName): Promise<Reply> {
  const { context, params, query } = call;
  const keystore = formats[file].keystore === 'none' ? undefined : keystoreOf(call);
  return answer(call, await context.formats.find(params.name ?? '', file, query.version, keystore));
}

/** The keystore that the request describes. Throws `invalid_request` for an unusable password. */
function keystoreOf({ headerLines, query }: FormatCall): Keystore | undefined {
  const password = keystorePasswordIn(headerLines(keystorePasswordHeader));
  return password && { password, encryption: query.encryption ?? 'aes256' };
}

async function answer(call: FormatCall, formatted: FormattedVersion): Promise<Reply> {
  const { context, actor, ifNoneMatch, isHead } = call;
  const { name, file, etag, version, isSecret } = formatted;
  const validators = {
    ETag: etag,
    'Certificate-Version': String(version),
    'Cache-Control': isSecret ? 'no-store' : 'private, no-cache',
    ...(formats[file].keystore !== 'none' && { Vary: 'Keystore-Password' }),
  };
  if (noneMatch(ifNoneMatch, etag)) {
    return unchanged(call, formatted, validators);
  }
  const headers = {
    ...validators,
    'Content-Type': mediaTypes[file],
    'Content-Disposition': `attachment; filename="${name.replaceAll('*', '_')}-${file}"`,
  };
  // Only making the file tells its size.
  if (isHead) return { status: 200, headers, body: '', size: (await formatted.make()).length };
  const excess = requireRecordAllowance(call, 'GET');
  if (excess !== undefined) return excess;
  return { status: 200, headers, body: await context.formats.handOut(formatted, actor) };
}
