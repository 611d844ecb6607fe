/** Issuers for administrators: list, create, change, test and delete. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import { directoryHint } from '../../domain/issuers/directory-hint.ts';
import { addIssuer, removeIssuer, updateIssuer } from '../../domain/issuers/issuer-changes.ts';
import {
  addIssuerInput,
  changeIssuerInput,
  changesFor,
  knownDirectory,
  withoutSecrets,
} from '../../domain/issuers/issuer-inputs.ts';
import { askIssuer } from '../../domain/issuers/issuer-offer.ts';
import { viewIssuer, viewIssuers } from '../../domain/issuers/issuer-views.ts';
import { type Issuer, issuerNamed } from '../../domain/issuers/issuers.ts';
import { addPrivateCa, changePrivateCa } from '../../domain/issuers/private-issuers.ts';
import { byNameQuery, issuerSchema, issuerTestSchema } from '../openapi/administration-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Route, route } from '../request/route.ts';
import { following, pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

export const issuerRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/issuers',
    id: 'listIssuers',
    summary: 'List issuers (the private CA and ACME CAs) by name, without their secrets',
    access,
    query: byNameQuery,
    replies: { 200: { description: 'a page', schema: z.array(issuerSchema), headers: ['Link'] } },
    problems: [],
    handle: async ({ context: { vault }, ...call }) =>
      pageReply(
        following(await viewIssuers(vault), call.query),
        call,
        (issuer) => issuer,
        ({ name }) => name,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers',
    id: 'addIssuer',
    summary:
      'Create a private CA with its own root, or an ACME issuer after reading the directory of the CA; if terms of service must be accepted, the problem names them',
    access,
    query: noQuery,
    body: addIssuerInput,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'added', schema: issuerSchema } },
    problems: [],
    handle: async ({ context: { vault }, actor, body, gone }) => {
      if (body.type === 'local-ca') {
        await answeringOperators(() => addPrivateCa(vault, actor, body));
        return json(201, await viewIssuer(vault, await requireAt(vault, body.name)));
      }
      const { type: _, ...acme } = body;
      const { input, secrets } = withoutSecrets(acme);
      const directory_url = input.directory_url ?? knownDirectory(input.name);
      if (directory_url === undefined) throw directoryMissing();
      await answeringOperators(
        () => addIssuer(vault, actor, { ...input, directory_url }, secrets, gone()),
        (error) => directoryHint(error, typeof secrets.ca === 'string'),
      );
      return json(201, await viewIssuer(vault, await requireAt(vault, input.name)));
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/issuers/{name}',
    id: 'changeIssuer',
    summary:
      'Change settings of an issuer; null clears the contact, profile, chain or trust root of an ACME issuer, or the constraints and defaults of a private CA',
    access,
    query: noQuery,
    body: changeIssuerInput,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'changed', schema: issuerSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params, body, gone }) => {
      const { name, type } = await requireAt(vault, params.name);
      const { acme, privateCa, force = false } = changesFor(type, body);
      await answeringOperators(
        () =>
          privateCa === undefined
            ? updateIssuer(vault, actor, name, acme.input, acme.secrets, gone())
            : changePrivateCa(vault, actor, name, privateCa, { force }),
        (error) => directoryHint(error, typeof acme?.secrets.ca === 'string'),
      );
      return json(200, await viewIssuer(vault, await requireAt(vault, name)));
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers/{name}/test',
    id: 'testIssuer',
    summary: 'Test an ACME issuer: read the directory of the CA and return what it offers',
    access,
    query: noQuery,
    replies: { 200: { description: 'the CA responded', schema: issuerTestSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params, gone }) => {
      const { name } = await requireAt(vault, params.name);
      return json(200, await answeringOperators(() => askIssuer(vault, name, gone())));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/issuers/{name}',
    id: 'removeIssuer',
    summary:
      'Delete an issuer that no certificate uses: the accounts of an ACME issuer are kept, the keys of a private CA are destroyed',
    access,
    query: noQuery,
    approval: async ({ context: { vault }, params }) =>
      `Delete the issuer ${(await requireAt(vault, params.name)).name}`,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      const { name } = await requireAt(vault, params.name);
      await answeringOperators(() => removeIssuer(vault, actor, name));
      return noContent;
    },
  }),
];

async function requireAt(vault: DatabaseContext, name = ''): Promise<Issuer> {
  const issuer = await issuerNamed(vault, name);
  if (issuer !== undefined) return issuer;
  throw new Problem('not_found', { detail: 'Issuer not found.' });
}

function directoryMissing(): Problem {
  const message = "is missing; it must be the URL of the CA's ACME directory";
  return new Problem('invalid_request', {
    detail: `directory_url: ${message}.`,
    errors: [{ path: 'directory_url', message }],
  });
}
