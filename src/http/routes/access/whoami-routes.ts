/** What the presented credentials may do, so that a client can check its key before it needs it. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { roles } from '../../../base/role.ts';
import { scopes } from '../../../base/scope.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../../base/timestamp.ts';
import type { ApiKeyIdentity, Identity } from '../../../domain/access/identity.ts';
import { confinementList } from '../../../domain/access/profile-confinement.ts';
import { reachOf } from '../../../domain/labels/reach.ts';
import { noQuery, time } from '../../openapi/schemas.ts';
import { json } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';

const whoamiSchema = z
  .strictObject({
    kind: z.enum(['api-key', 'administrator']),
    id: z.int().nullable().describe('id of the API key; null for an administrator'),
    name: z.string(),
    prefix: z.string().nullable().describe('prefix of the presented secret; null for an administrator'),
    scopes: z.array(z.enum(scopes)),
    certificates: z.array(z.string()).describe('["*"] for all certificates'),
    certificate_labels: z
      .array(z.string())
      .describe('labels: the key may also access certificates with any of them'),
    allowed_networks: z.array(z.string()).describe('networks the key may be used from; [] for any'),
    profiles: z
      .array(z.string())
      .describe(
        'profiles of private CAs that the caller may have certificates issued with, as issuer/profile; [] for any',
      ),
    role: z.enum(roles).nullable().describe('what the caller may administer; null for nothing'),
    reach: z.array(z.string()).describe('labels that confine what the caller may do; [] for everything'),
    client_certificate: z
      .string()
      .nullable()
      .describe('the certificate that clients of the key present in TLS; null if they need none'),
    expires_at: time.nullable().describe('when the key or the session expires'),
    secret_expires_at: time
      .nullable()
      .describe('when the presented secret ends: at the expiry, or earlier if a rotation replaced it'),
  })
  .meta({ id: 'Whoami' });

type Whoami = z.output<typeof whoamiSchema>;

export const whoamiRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/whoami',
    id: 'getWhoami',
    summary: 'Return what the presented API key or session may do',
    access: { kind: 'authenticated' },
    query: noQuery,
    replies: { 200: { description: 'the caller and its permissions', schema: whoamiSchema } },
    problems: [],
    handle: async ({ identity }) => {
      if (identity === undefined) throw new Problem('unauthenticated');
      return json(200, whoami(identity));
    },
  }),
];

function whoami(identity: Identity): Whoami {
  if (identity.kind === 'api-key') return keyView(identity);
  const end = formatTimestamp(identity.session.expiresAt);
  return {
    kind: 'administrator',
    id: null,
    name: identity.name,
    prefix: null,
    scopes: scopes.filter((scope) => identity.scopes.has(scope)),
    certificates: ['*'],
    certificate_labels: [],
    allowed_networks: [],
    profiles: confinementList(identity.profiles),
    role: identity.role,
    reach: [...(reachOf(identity) ?? [])],
    client_certificate: null,
    expires_at: end,
    secret_expires_at: end,
  };
}

function keyView(key: ApiKeyIdentity): Whoami {
  const ends = [key.expiresAt, key.replacedAt].filter((end) => end !== null);
  return {
    kind: 'api-key',
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scopes: scopes.filter((scope) => key.scopes.has(scope)),
    certificates: key.certificates === 'any' ? ['*'] : [...key.certificates].sort(),
    certificate_labels: [...key.certificateLabels],
    allowed_networks: key.networks === 'any' ? [] : key.networks.map(({ text }) => text),
    profiles: confinementList(key.profiles),
    role: key.role,
    reach: [...(reachOf(key) ?? [])],
    client_certificate: key.clientCertificate?.name ?? null,
    expires_at: formatTimestampOrNull(key.expiresAt),
    secret_expires_at: ends.length === 0 ? null : formatTimestamp(Math.min(...ends)),
  };
}
