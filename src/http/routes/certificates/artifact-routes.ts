/** Downloads: one route per artifact name, conditional requests, and the audit event before the first byte. */
import type { Scope } from '../../../base/scope.ts';
import { type ArtifactName, artifactNames, artifacts } from '../../../domain/versions/artifacts.ts';
import type { Artifact } from '../../../domain/versions/downloads.ts';
import { requireRecordAllowance } from '../../auth/record-limit.ts';
import { artifactQuery } from '../../openapi/schemas.ts';
import { noneMatch } from '../../request/conditional-request.ts';
import type { Reply } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { unchanged, unchangedReply, type VersionQuery } from './unchanged-reply.ts';

export const artifactRoutes: readonly Route[] = artifactNames.map((file) =>
  route({
    method: 'GET',
    path: `/api/v1/certificates/{name}/${file}`,
    id: `download_${file.replace(/[^a-z]/g, '_')}`,
    summary: `Download ${file}`,
    access: { kind: 'scope', scope: artifacts[file].scope satisfies Scope },
    query: artifactQuery,
    replies: {
      200: {
        description: 'the artifact as PEM; recorded in the audit log',
        contentType: 'application/x-pem-file',
        headers: ['ETag', 'Certificate-Version', 'Content-Disposition'],
      },
      304: unchangedReply('artifact', ['ETag', 'Certificate-Version']),
    },
    problems: [
      ...(['certificate_not_found', 'version_not_found', 'no_current_version'] as const),
      ...(artifacts[file].content === 'private_key' ? (['private_key_not_held'] as const) : []),
    ],
    handle: (call) => download(call, file),
  }),
);

type ArtifactCall = Call<VersionQuery>;

function download(call: ArtifactCall, file: ArtifactName): Reply | Promise<Reply> {
  const { context, params, query } = call;
  const artifact = context.downloads.find(params.name ?? '', file, query.version);
  return artifact instanceof Promise ? artifact.then((found) => answer(call, found)) : answer(call, artifact);
}

function answer(call: ArtifactCall, artifact: Artifact): Reply | Promise<Reply> {
  const { context, actor, ifNoneMatch, isHead } = call;
  const validators = {
    ETag: artifact.etag,
    'Certificate-Version': String(artifact.version),
    'Cache-Control': artifact.isSecret ? 'no-store' : 'private, no-cache',
  };
  if (noneMatch(ifNoneMatch, artifact.etag)) {
    return unchanged(call, artifact, validators);
  }
  const headers = {
    ...validators,
    'Content-Type': 'application/x-pem-file',
    'Content-Disposition': `attachment; filename="${fileName(artifact)}"`,
  };
  const { size } = artifact;
  if (isHead) return { status: 200, headers, body: '', size };
  const excess = requireRecordAllowance(call, 'GET');
  if (excess !== undefined) return excess;
  return context.downloads.handOut(artifact, actor).then((body) => ({ status: 200, headers, body, size }));
}

/** A name that is safe on all systems: the star of a wildcard becomes `_`. */
function fileName({ name, file }: Artifact): string {
  return `${name.replaceAll('*', '_')}-${file}`;
}
