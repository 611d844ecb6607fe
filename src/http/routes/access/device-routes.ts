/** Sign-in by OpenID Connect on the command line, by the device flow: its beginning, and the session at its end. */
import { z } from 'zod';
import { second } from '../../../base/duration.ts';
import { Problem } from '../../../base/problem.ts';
import { roles } from '../../../base/role.ts';
import { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { OidcRefusal, type RefusalCode } from '../../../domain/oidc/refusal.ts';
import { noQuery, time } from '../../openapi/schemas.ts';
import { json } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';
import { oidcOf, providerUnavailable } from './oidc-routes.ts';

const access = { kind: 'public' } as const;

const inputLimit = 1000;

const interval = z.number().describe('seconds to wait before each request for the session');

const begunSchema = z
  .strictObject({
    handle: z.string().describe('secret: gives the session to the program that has it'),
    user_code: z.string().describe('the code that the person compares or types at the provider'),
    verification_uri: z.string().describe('the page of the provider'),
    verification_uri_complete: z
      .string()
      .nullable()
      .describe('the same page with the code filled in; null if the provider has none'),
    interval,
    expires_at: time.describe('when the sign-in expires'),
  })
  .meta({ id: 'DeviceSignIn' });

const waitingSchema = z.strictObject({ interval }).meta({ id: 'WaitingDeviceSignIn' });

const sessionSchema = z
  .strictObject({
    token: z.string().describe('secret: to be sent as "Authorization: Bearer"; not shown again'),
    name: z.string(),
    role: z.enum(roles),
    expires_at: time.describe('latest expiry, even if the session is used'),
  })
  .meta({ id: 'DeviceSession' });

const finishInput = z.strictObject({
  handle: z
    .string()
    .regex(/^[\w-]{43}$/, 'handle is the one from the beginning of the sign-in')
    .transform((text) => new Secret(text)),
});

export const deviceRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/session/device',
    id: 'beginDeviceSignIn',
    summary: 'Begin to sign in by OpenID Connect on the command line, within ten minutes',
    access,
    query: noQuery,
    replies: { 201: { description: 'begun; the person continues at the provider', schema: begunSchema } },
    problems: ['forbidden', 'not_found', 'rate_limited', 'unavailable'],
    handle: async ({ context, actor }) => {
      try {
        const begun = await oidcOf(context).device.begin(actor.ip);
        return json(201, {
          handle: begun.handle.expose(),
          user_code: begun.userCode,
          verification_uri: begun.verificationUri,
          verification_uri_complete: begun.verificationUriComplete ?? null,
          interval: begun.interval / second,
          expires_at: formatTimestamp(begun.expiresAt),
        });
      } catch (error) {
        if (!(error instanceof OidcRefusal)) throw error;
        throw providerUnavailable(error);
      }
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/session/device/token',
    id: 'finishDeviceSignIn',
    summary: 'Return the session of a person who has confirmed the sign-in at the provider',
    access,
    query: noQuery,
    body: finishInput,
    bodyLimit: inputLimit,
    replies: {
      201: { description: 'signed in; recorded in the audit log', schema: sessionSchema },
      202: { description: 'not confirmed yet', schema: waitingSchema },
    },
    problems: ['forbidden', 'not_found', 'sign_in_expired', 'rate_limited', 'unavailable'],
    handle: async ({ context, actor, userAgent, body }) => {
      try {
        const result = await oidcOf(context).device.finish(body.handle, { actor, userAgent });
        if (!('token' in result)) return json(202, { interval: result.interval / second });
        const { name, role, session } = result.identity;
        const expires_at = formatTimestamp(session.expiresAt);
        return json(201, { token: result.token.expose(), name, role, expires_at });
      } catch (error) {
        if (!(error instanceof OidcRefusal)) throw error;
        throw problemOf(error);
      }
    },
  }),
];

const details: Readonly<Record<Exclude<RefusalCode, 'provider_unreachable' | 'rate_limited'>, string>> = {
  expired: 'The sign-in has expired or was used; begin again.',
  declined: 'The sign-in was declined at the identity provider.',
  invalid: 'The response of the identity provider is not valid; the audit log has the reason.',
  not_permitted: 'The identity provider authenticated you, but none of your groups has a role in this vault.',
  name_taken: 'Another administrator of the vault has your name.',
};

function problemOf(refusal: OidcRefusal): Problem {
  const { code } = refusal;
  if (code === 'provider_unreachable') return providerUnavailable(refusal);
  if (code === 'rate_limited') return new Problem('rate_limited', { cause: refusal });
  const problem = code === 'expired' ? 'sign_in_expired' : 'forbidden';
  return new Problem(problem, { detail: details[code], cause: refusal });
}
