/** Administrators of the console: list, create and delete. */
import { z } from 'zod';
import { roles } from '../../../base/role.ts';
import {
  createAdministratorInput,
  type UpdateAdministratorInput,
  updateAdministratorInput,
} from '../../../domain/access/administrator-inputs.ts';
import {
  type AdministratorView,
  changeRights,
  createAdministrator,
  deleteAdministrator,
  requireAdministrator,
  viewAdministrators,
} from '../../../domain/access/administrators.ts';
import { signInMethods } from '../../../domain/access/identity.ts';
import { clearFactorsOf } from '../../../domain/second-factors/clearing.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { credentialsLimit } from './session-routes.ts';

const time = z.iso.datetime().describe('RFC 3339, UTC with Z');

const administratorSchema = z
  .strictObject({
    name: z.string(),
    role: z.enum(roles),
    reach: z.array(z.string()).describe('labels that confine what they see and change; [] for everything'),
    profiles: z
      .array(z.string())
      .describe(
        'profiles of private CAs that they may have certificates issued with, as issuer/profile; [] for any',
      ),
    sign_in: z.enum(signInMethods).describe('oidc: the identity provider decides the role'),
    created_at: time,
    last_signed_in_at: time.nullable(),
    has_second_factor: z.boolean().describe('a passkey or an authenticator app'),
  })
  .meta({ id: 'Administrator' }) satisfies z.ZodType<AdministratorView>;

const access = { kind: 'administrator' } as const;

export const administratorRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/administrators',
    id: 'listAdministrators',
    summary: 'List administrators by name',
    access,
    query: noQuery,
    replies: { 200: { description: 'all administrators', schema: z.array(administratorSchema) } },
    problems: [],
    handle: async ({ context: { vault } }) => json(200, await viewAdministrators(vault)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/administrators',
    id: 'createAdministrator',
    summary: 'Create an administrator',
    access,
    query: noQuery,
    body: createAdministratorInput,
    // Else one person could be two.
    approval: ({ body: { name, role, reach, profiles } }) => {
      const confined = {
        ...(reach.length > 0 && { reach }),
        ...(profiles.length > 0 && { profiles }),
      };
      return `Create the administrator ${name} with the role ${role}${confinementText(confined)}`;
    },
    bodyLimit: credentialsLimit,
    replies: { 201: { description: 'created; recorded in the audit log', schema: administratorSchema } },
    problems: ['administrator_exists', 'rate_limited'],
    handle: async ({ context: { vault, signIn }, actor, body }) =>
      json(201, await createAdministrator(vault, signIn.passwords, actor, body)),
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/administrators/{name}',
    id: 'updateAdministrator',
    summary:
      'Give an administrator another role, reach or profiles with immediate effect; one with the role admin must stay',
    access,
    query: noQuery,
    body: updateAdministratorInput,
    approval: async (call) => {
      const { role } = call.body;
      const text = `${role === undefined ? '' : ` the role ${role}`}${confinementText(call.body)}`;
      return `Give the administrator ${await knownName(call)}${text}`;
    },
    replies: { 200: { description: 'the changed administrator', schema: administratorSchema } },
    problems: ['administrator_not_found', 'oidc_administrator', 'last_administrator'],
    handle: async ({ context: { vault }, actor, params, body }) =>
      json(200, await changeRights(vault, actor, { name: params.name ?? '', ...body, theLast: 'stays' })),
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/administrators/{name}',
    id: 'deleteAdministrator',
    summary: 'Delete an administrator and their sessions; one with the role admin must stay',
    access,
    query: noQuery,
    approval: async (call) => `Delete the administrator ${await knownName(call)}`,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['administrator_not_found', 'last_administrator'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteAdministrator(vault, actor, params.name ?? '', 'stays');
      return noContent;
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/administrators/{name}/second-factors',
    id: 'clearSecondFactors',
    summary: 'Remove all second factors of another administrator, and end their sessions',
    access,
    query: noQuery,
    approval: async (call) => `Remove the second factors of the administrator ${await knownName(call)}`,
    replies: { 204: { description: 'removed; recorded in the audit log', contentType: 'none' } },
    problems: ['administrator_not_found', 'oidc_administrator', 'second_factor_not_found'],
    handle: async ({ context: { vault }, actor, identity, params }) => {
      await clearFactorsOf(vault, actor, identity, params.name ?? '');
      return noContent;
    },
  }),
];

/** What an approver reads of the confinement that a request names. */
function confinementText({ reach, profiles }: Pick<UpdateAdministratorInput, 'reach' | 'profiles'>): string {
  const said = [
    ...(reach === undefined
      ? []
      : [reach.length === 0 ? 'without a reach' : `with the reach ${reach.join(', ')}`]),
    ...(profiles === undefined
      ? []
      : [profiles.length === 0 ? 'without profiles' : `with the profiles ${profiles.join(', ')}`]),
  ];
  return said.length === 0 ? '' : ` ${said.join(' and ')}`;
}

/** Throws `administrator_not_found`. */
async function knownName({ context: { vault }, params }: Pick<Call, 'context' | 'params'>): Promise<string> {
  return (await requireAdministrator(vault.db.reader, params.name ?? '')).name;
}
