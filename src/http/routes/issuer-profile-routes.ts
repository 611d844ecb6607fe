/** The profiles of private CAs for administrators: list, create, change and delete. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import {
  addProfile,
  changeProfile,
  removeProfile,
  viewProfile,
  viewProfiles,
} from '../../domain/issuers/issuer-profiles.ts';
import { issuerNamed } from '../../domain/issuers/issuers.ts';
import { createProfileInput, updateProfileInput } from '../../domain/private-ca/profile-inputs.ts';
import { byNameQuery } from '../openapi/administration-schemas.ts';
import { profileSchema } from '../openapi/private-ca-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { following, pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

export const issuerProfileRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/issuers/{name}/profiles',
    id: 'listProfiles',
    summary: 'List the profiles of a private CA by name',
    access,
    query: byNameQuery,
    replies: { 200: { description: 'a page', schema: z.array(profileSchema), headers: ['Link'] } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, ...call }) => {
      const issuer = await issuerAt(vault, call.params);
      const profiles = await answeringOperators(() => viewProfiles(vault, issuer));
      return pageReply(
        following(profiles, call.query),
        call,
        (profile) => profile,
        ({ name }) => name,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers/{name}/profiles',
    id: 'addProfile',
    summary: 'Create a profile of a private CA: a named set of what certificates have and may have',
    access,
    query: noQuery,
    body: createProfileInput,
    replies: { 201: { description: 'added', schema: profileSchema } },
    problems: ['not_found', 'profile_exists'],
    handle: async ({ context: { vault }, actor, params, body }) => {
      const issuer = await issuerAt(vault, params);
      await answeringOperators(() => addProfile(vault, actor, issuer, body));
      return json(201, await viewProfile(vault, issuer, body.name));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/issuers/{name}/profiles/{profile}',
    id: 'getProfile',
    summary: 'Return a profile of a private CA',
    access,
    query: noQuery,
    replies: { 200: { description: 'the profile', schema: profileSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params }) => {
      const issuer = await issuerAt(vault, params);
      return json(200, await answeringOperators(() => viewProfile(vault, issuer, params.profile ?? '')));
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/issuers/{name}/profiles/{profile}',
    id: 'changeProfile',
    summary:
      'Change a profile, which applies from the next issuance of each certificate; null clears a setting',
    access,
    query: noQuery,
    body: updateProfileInput,
    replies: { 200: { description: 'changed', schema: profileSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params, body }) => {
      const issuer = await issuerAt(vault, params);
      const name = params.profile ?? '';
      await answeringOperators(() => changeProfile(vault, actor, issuer, name, body));
      return json(200, await viewProfile(vault, issuer, name));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/issuers/{name}/profiles/{profile}',
    id: 'removeProfile',
    summary: 'Delete a profile that no certificate and no API key uses',
    access,
    query: noQuery,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['not_found', 'profile_in_use'],
    handle: async ({ context: { vault }, actor, params }) => {
      const issuer = await issuerAt(vault, params);
      await answeringOperators(() => removeProfile(vault, actor, issuer, params.profile ?? ''));
      return noContent;
    },
  }),
];

async function issuerAt(
  vault: DatabaseContext,
  { name = '' }: Readonly<Record<string, string>>,
): Promise<string> {
  if ((await issuerNamed(vault, name)) !== undefined) return name;
  throw new Problem('not_found', { detail: 'Issuer not found.' });
}
