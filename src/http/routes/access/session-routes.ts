/** Signing in and out, and managing one's own sessions and password. */
import { z } from 'zod';
import { second } from '../../../base/duration.ts';
import { roles } from '../../../base/role.ts';
import { scopes } from '../../../base/scope.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import {
  type AdministratorIdentity,
  type SignedIn,
  sessionNeeded,
  signInMethods,
} from '../../../domain/access/identity.ts';
import { confinementList } from '../../../domain/access/profile-confinement.ts';
import type { SessionView } from '../../../domain/access/sessions.ts';
import { changePasswordInput, signInInput } from '../../../domain/access/sign-in.ts';
import { reachOf } from '../../../domain/labels/reach.ts';
import { secondStepInput } from '../../../domain/second-factors/factor-inputs.ts';
import { stateLifetime } from '../../../domain/second-factors/sealed-state.ts';
import { secondSteps } from '../../../domain/second-factors/second-step.ts';
import { mustEnroll } from '../../auth/enrolment.ts';
import {
  readSession,
  sessionClearCookie,
  sessionSetCookie,
  stepCookieName,
  stepSetCookie,
} from '../../auth/session-cookie.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, type Reply } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import type { ServerContext } from '../../request/server-context.ts';

/** Names and passwords are short. */
export const credentialsLimit = 16_384;

const time = z.iso.datetime().describe('RFC 3339, UTC with Z');

export const signedInSchema = z
  .strictObject({
    name: z.string(),
    role: z.enum(roles),
    scopes: z.array(z.enum(scopes)).describe('without private_keys:read where private keys are hidden'),
    reach: z.array(z.string()).describe('labels that confine what the person may do; [] for everything'),
    profiles: z
      .array(z.string())
      .describe(
        'profiles of private CAs that the person may have certificates issued with, as issuer/profile; [] for any',
      ),
    second_approval: z
      .boolean()
      .describe('whether destructive changes need the approval of a second administrator'),
    sign_in: z.enum(signInMethods),
    second_factor_needed: z
      .boolean()
      .describe('whether the person must set up a second factor before anything else'),
    created_at: time,
    expires_at: time.describe('latest expiry, even if the session is used'),
  })
  .meta({ id: 'SignedIn' });

const nextStepSchema = z
  .strictObject({
    methods: z.array(z.enum(secondSteps)).describe('what the person can use'),
    expires_at: time,
  })
  .meta({ id: 'NextSignInStep' });

const sessionSchema = z
  .strictObject({
    id: z.int(),
    created_at: time,
    last_used_at: time.describe('accurate to the minute'),
    expires_at: time,
    ip: z.string().nullable(),
    user_agent: z.string().nullable(),
    current: z.boolean().describe('whether it is the session of this request'),
  })
  .meta({ id: 'Session' }) satisfies z.ZodType<SessionView>;

const administrator = { kind: 'administrator', isPersonal: true } as const;
const session = { kind: 'session' } as const;

export const sessionRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/session',
    id: 'getSession',
    summary: 'Return the signed-in administrator',
    access: session,
    query: noQuery,
    replies: { 200: { description: 'the administrator and the session', schema: signedInSchema } },
    problems: [],
    handle: async (call) => json(200, signedInView(call.context, personOf(call))),
  }),
  route({
    method: 'POST',
    path: '/api/v1/session',
    id: 'signIn',
    summary: 'Sign in as an administrator; people with a second factor continue with finishSignIn',
    access: { kind: 'public' },
    query: noQuery,
    body: signInInput,
    bodyLimit: credentialsLimit,
    replies: {
      201: { description: 'signed in', schema: signedInSchema, headers: ['Set-Cookie'] },
      202: {
        description: 'the password is correct; a second step is needed, in this browser',
        schema: nextStepSchema,
        headers: ['Set-Cookie'],
      },
    },
    problems: ['unauthenticated', 'forbidden', 'rate_limited'],
    handle: async ({ context, baseUrl, body, actor, userAgent }) => {
      const first = await context.signIn.signIn(body, { actor, userAgent });
      if ('token' in first) return signedInReply(context, baseUrl, first);
      const { sealed, methods, expiresAt } = await context.secondStep.begin(first);
      const cookie = stepSetCookie(baseUrl, 'vault_second_step', sealed, stateLifetime / second);
      return json(202, { methods, expires_at: expiresAt }, { 'Set-Cookie': cookie });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/session/second-step',
    id: 'finishSignIn',
    summary: 'Finish signing in with a code of the authenticator app, or a recovery code',
    access: { kind: 'public' },
    query: noQuery,
    body: secondStepInput,
    bodyLimit: credentialsLimit,
    replies: { 201: { description: 'signed in', schema: signedInSchema, headers: ['Set-Cookie'] } },
    problems: ['unauthenticated', 'sign_in_expired', 'forbidden', 'rate_limited'],
    handle: async ({ context, baseUrl, body, actor, userAgent, headerLines }) => {
      const cookie = stepCookieName(baseUrl, 'vault_second_step');
      const sealed = readSession(headerLines('cookie').join('; '), cookie);
      const signedIn = await context.secondStep.finish(body.code, sealed, { actor, userAgent });
      return signedInReply(context, baseUrl, signedIn);
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/session',
    id: 'signOut',
    summary: 'Sign out; the session becomes invalid immediately',
    access: session,
    query: noQuery,
    replies: { 204: { description: 'signed out', contentType: 'none', headers: ['Set-Cookie'] } },
    problems: ['session_not_found'],
    handle: async (call) => {
      const { context, actor } = call;
      const person = personOf(call);
      await context.signIn.sessions.end(actor, person, person.session.id);
      return done({ 'Set-Cookie': sessionClearCookie(call.baseUrl) });
    },
  }),
  route({
    method: 'PUT',
    path: '/api/v1/session/password',
    id: 'changePassword',
    summary: 'Change your own password and sign out your other sessions',
    access: administrator,
    query: noQuery,
    body: changePasswordInput,
    bodyLimit: credentialsLimit,
    replies: { 204: { description: 'changed; recorded in the audit log', contentType: 'none' } },
    problems: ['oidc_administrator', 'rate_limited'],
    handle: async (call) => {
      await call.context.signIn.changePassword(call.actor, personOf(call), call.body);
      return done();
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/sessions',
    id: 'listSessions',
    summary: 'List your own sessions, newest first',
    access: administrator,
    query: noQuery,
    replies: { 200: { description: 'active sessions', schema: z.array(sessionSchema) } },
    problems: [],
    handle: async (call) => json(200, await call.context.signIn.sessions.view(personOf(call))),
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/sessions/{id}',
    id: 'endSession',
    summary: 'Sign out one of your own sessions',
    access: administrator,
    query: noQuery,
    replies: { 204: { description: 'signed out; recorded in the audit log', contentType: 'none' } },
    problems: ['session_not_found'],
    handle: async (call) => {
      const id = /^[1-9]\d{0,14}$/.test(call.params.id ?? '') ? Number(call.params.id) : 0;
      await call.context.signIn.sessions.end(call.actor, personOf(call), id);
      return done();
    },
  }),
];

/** The response after signing in. */
export function signedInReply(context: ServerContext, baseUrl: string, signedIn: SignedIn): Reply {
  const headers = { 'Set-Cookie': sessionCookieOf(baseUrl, signedIn) };
  return json(201, signedInView(context, signedIn.identity), headers);
}

/** `Set-Cookie` with the session. */
export function sessionCookieOf(baseUrl: string, { identity, token }: SignedIn): string {
  const { createdAt, expiresAt } = identity.session;
  return sessionSetCookie(baseUrl, token, Math.floor((expiresAt - createdAt) / 1000));
}

function signedInView(context: ServerContext, identity: AdministratorIdentity) {
  const { name, role, scopes: own, signIn, session } = identity;
  return {
    name,
    role,
    scopes: scopes.filter((scope) => own.has(scope)),
    reach: [...(reachOf(identity) ?? [])],
    profiles: confinementList(identity.profiles),
    second_approval: context.secondApproval,
    sign_in: signIn,
    second_factor_needed: mustEnroll(context, identity),
    created_at: formatTimestamp(session.createdAt),
    expires_at: formatTimestamp(session.expiresAt),
  };
}

/** The administrator of the session; access.ts rejects all other callers. */
export function personOf({ identity }: Pick<Call, 'identity'>): AdministratorIdentity {
  if (identity?.kind !== 'administrator') throw sessionNeeded();
  return identity;
}

function done(headers: Readonly<Record<string, string>> = {}): Reply {
  return { status: 204, headers: { 'Cache-Control': 'no-store', ...headers }, body: '' };
}
