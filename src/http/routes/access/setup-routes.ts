/** Creates the first administrator, through the link that the vault showed at its start. */
import { completeSetup, setupInput } from '../../../domain/access/setup.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { type Route, route } from '../../request/route.ts';
import { credentialsLimit, signedInReply, signedInSchema } from './session-routes.ts';

export const setupRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/setup',
    id: 'completeSetup',
    summary: 'Create the first administrator and sign in; works once',
    access: { kind: 'public' },
    query: noQuery,
    body: setupInput,
    bodyLimit: credentialsLimit,
    replies: {
      201: { description: 'created and signed in', schema: signedInSchema, headers: ['Set-Cookie'] },
    },
    problems: ['forbidden', 'rate_limited'],
    handle: async ({ context, baseUrl, body, actor, userAgent }) => {
      const { vault, signIn } = context;
      return signedInReply(context, baseUrl, await completeSetup(vault, signIn, body, { actor, userAgent }));
    },
  }),
];
