/** The second factors of the signed-in person, who manages no others. */
import { z } from 'zod';
import type { Secret } from '../../../base/secret.ts';
import { beginApp, confirmApp, removeApp } from '../../../domain/second-factors/authenticator-apps.ts';
import { confirmAppInput, passwordInput } from '../../../domain/second-factors/factor-inputs.ts';
import { type FactorsView, viewFactors } from '../../../domain/second-factors/own-factors.ts';
import { renewRecoveryCodes } from '../../../domain/second-factors/recovery-codes.ts';
import { relyingParty } from '../../../domain/second-factors/relying-party.ts';
import { noQuery, time } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';
import { credentialsLimit, personOf } from './session-routes.ts';

export const passkeySchema = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    created_at: time,
    last_used_at: time.nullable(),
  })
  .meta({ id: 'Passkey' });

const factorsSchema = z
  .strictObject({
    passkeys: z.array(passkeySchema),
    totp: z
      .strictObject({ created_at: time, last_used_at: time.nullable() })
      .nullable()
      .describe('the authenticator app; null without one'),
    recovery_codes: z.int().describe('how many are left'),
    passkeys_at: z
      .string()
      .nullable()
      .describe('the address at which passkeys work; null if the public URL of the vault permits none'),
    required: z.boolean().describe('whether the vault requires a second factor'),
  })
  .meta({ id: 'SecondFactors' }) satisfies z.ZodType<FactorsView>;

const newAppSchema = z
  .strictObject({
    pending: z.string().describe('to be returned with the first code'),
    secret: z.string().describe('Base32, for typing into the app'),
    uri: z.string().describe('otpauth://…, for a QR code'),
    expires_at: time,
  })
  .meta({ id: 'NewAuthenticatorApp' });

const recoveryCodesSchema = z
  .strictObject({ recovery_codes: z.array(z.string()).describe('each works once; they are not shown again') })
  .meta({ id: 'RecoveryCodes' });

const own = { kind: 'administrator', isPersonal: true } as const;

/** What people may do who must set up a second factor first. */
const enrolment = { ...own, isEnrolment: true } as const;

const path = '/api/v1/second-factors';

export const factorRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path,
    id: 'getSecondFactors',
    summary: 'Return your own second factors',
    access: enrolment,
    query: noQuery,
    replies: {
      200: { description: 'passkeys, authenticator app and recovery codes', schema: factorsSchema },
    },
    problems: ['oidc_administrator', 'administrator_not_found'],
    handle: async (call) => {
      const { vault, requireSecondFactor, publicUrl } = call.context;
      const passkeys_at = relyingParty(publicUrl)?.origin ?? null;
      const view = await viewFactors(vault, personOf(call));
      return json(200, { ...view, passkeys_at, required: requireSecondFactor });
    },
  }),
  route({
    method: 'POST',
    path: `${path}/totp`,
    id: 'beginAuthenticatorApp',
    summary: 'Generate a secret for your authenticator app, which counts after confirmation with a code',
    access: enrolment,
    query: noQuery,
    body: passwordInput,
    bodyLimit: credentialsLimit,
    replies: { 201: { description: 'the secret', schema: newAppSchema } },
    problems: ['oidc_administrator', 'administrator_not_found', 'rate_limited'],
    handle: async (call) => {
      const { context, actor, baseUrl, body } = call;
      await context.signIn.confirmPassword(actor, personOf(call), body.password);
      const app = await beginApp(context.vault, personOf(call), URL.parse(baseUrl)?.host ?? '');
      return json(201, {
        pending: app.pending.expose(),
        secret: app.secret.expose(),
        uri: app.uri.expose(),
        expires_at: app.expiresAt,
      });
    },
  }),
  route({
    method: 'PUT',
    path: `${path}/totp`,
    id: 'confirmAuthenticatorApp',
    summary: 'Set up your authenticator app with its first code; replaces an earlier app',
    access: enrolment,
    query: noQuery,
    body: confirmAppInput,
    bodyLimit: credentialsLimit,
    replies: {
      200: { description: 'set up; recorded in the audit log', schema: recoveryCodesSchema },
    },
    problems: ['sign_in_expired', 'oidc_administrator', 'administrator_not_found'],
    handle: async (call) =>
      codesReply(200, await confirmApp(call.context.vault, call.actor, personOf(call), call.body)),
  }),
  route({
    method: 'POST',
    path: `${path}/totp/remove`,
    id: 'removeAuthenticatorApp',
    summary: 'Remove your authenticator app',
    access: own,
    query: noQuery,
    body: passwordInput,
    bodyLimit: credentialsLimit,
    replies: { 204: { description: 'removed; recorded in the audit log', contentType: 'none' } },
    problems: [
      'second_factor_not_found',
      'last_second_factor',
      'oidc_administrator',
      'administrator_not_found',
      'rate_limited',
    ],
    handle: async (call) => {
      const { context, actor, body } = call;
      await context.signIn.confirmPassword(actor, personOf(call), body.password);
      await removeApp(context.vault, actor, personOf(call), context.requireSecondFactor);
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: `${path}/recovery-codes`,
    id: 'renewRecoveryCodes',
    summary: 'Replace your recovery codes by new ones',
    access: own,
    query: noQuery,
    body: passwordInput,
    bodyLimit: credentialsLimit,
    replies: { 201: { description: 'the codes; recorded in the audit log', schema: recoveryCodesSchema } },
    problems: ['second_factor_not_found', 'oidc_administrator', 'administrator_not_found', 'rate_limited'],
    handle: async (call) => {
      const { context, actor, body } = call;
      await context.signIn.confirmPassword(actor, personOf(call), body.password);
      return codesReply(201, await renewRecoveryCodes(context.vault, actor, personOf(call)));
    },
  }),
];

function codesReply(status: number, codes: readonly Secret<string>[]) {
  return json(status, { recovery_codes: codes.map((code) => code.expose()) });
}
