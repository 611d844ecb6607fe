/** Passkeys: registering and managing one's own, and signing in with one. */
import { z } from 'zod';
import { second } from '../../../base/duration.ts';
import { Problem } from '../../../base/problem.ts';
import { passwordInput } from '../../../domain/second-factors/factor-inputs.ts';
import {
  createPasskeyInput,
  passkeySignInInput,
  renamePasskeyInput,
} from '../../../domain/second-factors/passkey-inputs.ts';
import { beginPasskeySignIn, finishPasskeySignIn } from '../../../domain/second-factors/passkey-sign-in.ts';
import {
  addPasskey,
  beginPasskey,
  removePasskey,
  renamePasskey,
} from '../../../domain/second-factors/passkeys.ts';
import { type RelyingParty, relyingParty } from '../../../domain/second-factors/relying-party.ts';
import { stateLifetime } from '../../../domain/second-factors/sealed-state.ts';
import { readSession, stepCookieName, stepSetCookie } from '../../auth/session-cookie.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import type { ServerContext } from '../../request/server-context.ts';
import { passkeySchema } from './factor-routes.ts';
import { credentialsLimit, personOf, signedInReply, signedInSchema } from './session-routes.ts';

const own = { kind: 'administrator', isPersonal: true } as const;

const enrolment = { ...own, isEnrolment: true } as const;

const open = { kind: 'public' } as const;

const path = '/api/v1/second-factors/passkeys';

/** As `navigator.credentials` takes them. */
const options = z.looseObject({ challenge: z.string() });

const newPasskeySchema = z
  .strictObject({
    pending: z.string().describe('to be returned with the new passkey'),
    options: options.describe('for PublicKeyCredential.parseCreationOptionsFromJSON'),
  })
  .meta({ id: 'NewPasskey' });

const challengeSchema = z
  .strictObject({ options: options.describe('for PublicKeyCredential.parseRequestOptionsFromJSON') })
  .meta({ id: 'PasskeyChallenge' });

const ownProblems = ['oidc_administrator', 'administrator_not_found'] as const;

export const passkeyRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: `${path}/options`,
    id: 'beginPasskey',
    summary: 'Begin to register a passkey of your own, in this session within five minutes',
    access: enrolment,
    query: noQuery,
    body: passwordInput,
    bodyLimit: credentialsLimit,
    replies: { 201: { description: 'begun', schema: newPasskeySchema } },
    problems: ['not_found', 'rate_limited', ...ownProblems],
    handle: async (call) => {
      const { context, actor, body } = call;
      const party = partyOf(context);
      await context.signIn.confirmPassword(actor, personOf(call), body.password);
      const { pending, options: forBrowser } = await beginPasskey(context.vault, personOf(call), party);
      return json(201, { pending: pending.expose(), options: forBrowser });
    },
  }),
  route({
    method: 'POST',
    path,
    id: 'createPasskey',
    summary: 'Register the passkey that the browser created',
    access: enrolment,
    query: noQuery,
    body: createPasskeyInput,
    replies: { 201: { description: 'registered; recorded in the audit log', schema: passkeySchema } },
    problems: ['not_found', 'sign_in_expired', 'passkey_exists', ...ownProblems],
    handle: async (call) => {
      const { context, actor, body } = call;
      return json(201, await addPasskey(context.vault, actor, personOf(call), partyOf(context), body));
    },
  }),
  route({
    method: 'PATCH',
    path: `${path}/{id}`,
    id: 'renamePasskey',
    summary: 'Give a passkey of your own another name',
    access: own,
    query: noQuery,
    body: renamePasskeyInput,
    replies: { 200: { description: 'the passkey', schema: passkeySchema } },
    problems: ['second_factor_not_found', ...ownProblems],
    handle: async (call) => {
      const { context, actor, body } = call;
      return json(
        200,
        await renamePasskey(context.vault, actor, personOf(call), { id: idOf(call), ...body }),
      );
    },
  }),
  route({
    method: 'POST',
    path: `${path}/{id}/remove`,
    id: 'removePasskey',
    summary: 'Remove a passkey of your own; it stops working immediately',
    access: own,
    query: noQuery,
    body: passwordInput,
    bodyLimit: credentialsLimit,
    replies: { 204: { description: 'removed; recorded in the audit log', contentType: 'none' } },
    problems: ['second_factor_not_found', 'last_second_factor', 'rate_limited', ...ownProblems],
    handle: async (call) => {
      const { context, actor, body } = call;
      await context.signIn.confirmPassword(actor, personOf(call), body.password);
      await removePasskey(context.vault, actor, personOf(call), idOf(call), context.requireSecondFactor);
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/session/passkey/options',
    id: 'beginPasskeySignIn',
    summary: 'Begin to sign in by passkey, in this browser within five minutes',
    access: open,
    query: noQuery,
    replies: { 201: { description: 'begun', schema: challengeSchema, headers: ['Set-Cookie'] } },
    problems: ['forbidden', 'not_found'],
    handle: async ({ context, baseUrl }) => {
      const { sealed, options: forBrowser } = await beginPasskeySignIn(context.vault, partyOf(context));
      const cookie = stepSetCookie(baseUrl, 'vault_passkey', sealed, stateLifetime / second);
      return json(201, { options: forBrowser }, { 'Set-Cookie': cookie });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/session/passkey',
    id: 'finishPasskeySignIn',
    summary: 'Sign in by passkey, which counts as both factors',
    access: open,
    query: noQuery,
    body: passkeySignInInput,
    replies: { 201: { description: 'signed in', schema: signedInSchema, headers: ['Set-Cookie'] } },
    problems: ['unauthenticated', 'sign_in_expired', 'forbidden', 'not_found', 'rate_limited'],
    handle: async ({ context, baseUrl, body: response, actor, userAgent, headerLines }) => {
      const cookie = stepCookieName(baseUrl, 'vault_passkey');
      const sealed = readSession(headerLines('cookie').join('; '), cookie);
      const { vault, signIn } = context;
      const visitor = { actor, userAgent };
      const presented = { response, sealed };
      const signedIn = await finishPasskeySignIn(vault, signIn, partyOf(context), presented, visitor);
      return signedInReply(context, baseUrl, signedIn);
    },
  }),
];

/** Throws `not_found` if browsers could not use passkeys here. */
function partyOf({ publicUrl }: ServerContext): RelyingParty {
  const party = relyingParty(publicUrl);
  if (party !== undefined) return party;
  throw new Problem('not_found', {
    detail: 'Passkeys need the setting public-url with an https URL that has a domain name.',
  });
}

function idOf({ params }: Pick<Call, 'params'>): number {
  return /^[1-9]\d{0,14}$/.test(params.id ?? '') ? Number(params.id) : 0;
}
