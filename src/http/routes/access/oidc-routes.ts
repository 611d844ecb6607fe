/** Sign-in by OpenID Connect: what the sign-in page offers, the way to the provider and back, and its logouts. */
import { z } from 'zod';
import { second } from '../../../base/duration.ts';
import { Problem } from '../../../base/problem.ts';
import { needsSetup } from '../../../domain/access/setup.ts';
import { logOutByProvider } from '../../../domain/oidc/backchannel-logout.ts';
import type { OidcSignIn } from '../../../domain/oidc/oidc-sign-in.ts';
import { pendingLifetime } from '../../../domain/oidc/pending-sign-in.ts';
import { callbackPath } from '../../../domain/oidc/provider-settings.ts';
import { OidcRefusal } from '../../../domain/oidc/refusal.ts';
import { anyoneHasPasskeys } from '../../../domain/second-factors/passkeys.ts';
import { relyingParty } from '../../../domain/second-factors/relying-party.ts';
import { oidcClearCookie, oidcCookieName, oidcSetCookie, readSession } from '../../auth/session-cookie.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, type Reply } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';
import type { ServerContext } from '../../request/server-context.ts';
import { sessionCookieOf } from './session-routes.ts';

const access = { kind: 'public' } as const;

const signInMethodsSchema = z
  .strictObject({
    oidc: z
      .strictObject({
        provider: z.string().describe('the host of the provider'),
        public_url: z.string().describe('the address at which signing in works'),
      })
      .nullable()
      .describe('null if no OpenID Connect provider is set up'),
    passkeys: z
      .strictObject({ public_url: z.string().describe('the address at which signing in works') })
      .nullable()
      .describe('null if no one has a passkey'),
    setup_needed: z.boolean().describe('whether there is no administrator yet'),
  })
  .meta({ id: 'SignInMethods' });

/** Providers may add other parameters. */
const logoutInput = z.object({
  logout_token: z
    .string()
    .max(16_000)
    .regex(/^[\w-]+\.[\w-]+\.[\w-]*$/),
});

export const oidcRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/sign-in-methods',
    id: 'getSignInMethods',
    summary: 'Return the ways to sign in besides a password',
    access,
    query: noQuery,
    replies: { 200: { description: 'the ways', schema: signInMethodsSchema } },
    problems: [],
    handle: async ({ context: { vault, oidc, publicUrl } }) => {
      const settings = oidc?.provider.settings;
      const origin = relyingParty(publicUrl)?.origin;
      const hasAny = origin !== undefined && (await anyoneHasPasskeys(vault));
      return json(200, {
        oidc: settings ? { provider: new URL(settings.issuer).host, public_url: settings.publicUrl } : null,
        passkeys: hasAny ? { public_url: origin } : null,
        setup_needed: await needsSetup(vault),
      });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/session/oidc',
    id: 'beginOidcSignIn',
    summary: 'Begin to sign in by OpenID Connect, in this browser within ten minutes',
    access,
    query: noQuery,
    replies: {
      201: {
        description: 'begun; the person continues at the URL',
        schema: z.strictObject({ url: z.string() }).meta({ id: 'OidcSignIn' }),
        headers: ['Set-Cookie'],
      },
    },
    problems: ['forbidden', 'not_found', 'unavailable'],
    handle: async ({ context }) => {
      const oidc = oidcOf(context);
      const { publicUrl } = oidc.provider.settings;
      try {
        const { url, sealed } = await oidc.begin();
        const cookie = oidcSetCookie(publicUrl, sealed, pendingLifetime / second);
        return json(201, { url }, { 'Set-Cookie': cookie });
      } catch (error) {
        if (!(error instanceof OidcRefusal)) throw error;
        throw providerUnavailable(error);
      }
    },
  }),
  route({
    method: 'GET',
    path: callbackPath,
    id: 'finishOidcSignIn',
    summary: 'Finish signing in by OpenID Connect; the provider sends the browser here',
    access,
    replies: {
      303: {
        description: 'to the console, signed in, or to its sign-in page with the reason',
        contentType: 'none',
        headers: ['Location', 'Set-Cookie'],
      },
    },
    problems: ['not_found'],
    handle: async ({ context, actor, userAgent, headerLines, target }) => {
      const oidc = oidcOf(context);
      const { publicUrl } = oidc.provider.settings;
      const sealed = readSession(headerLines('cookie').join('; '), oidcCookieName(publicUrl));
      const query = new URL(target, publicUrl).search.slice(1);
      if (await oidc.finishTest(query)) {
        return redirect(`${publicUrl}/sign-in?refused=tested`, oidcClearCookie(publicUrl));
      }
      try {
        const signedIn = await oidc.finish(query, sealed, { actor, userAgent });
        return redirect(`${publicUrl}/signed-in`, sessionCookieOf(publicUrl, signedIn));
      } catch (error) {
        if (!(error instanceof OidcRefusal)) throw error;
        return redirect(`${publicUrl}/sign-in?refused=${error.code}`, oidcClearCookie(publicUrl));
      }
    },
  }),
  route({
    method: 'POST',
    path: '/oidc/backchannel-logout',
    id: 'logOutByProvider',
    summary: 'End sessions with a logout token of the OpenID Connect provider',
    access,
    query: noQuery,
    body: logoutInput,
    bodyTypes: {
      'application/x-www-form-urlencoded': (bytes) =>
        Object.fromEntries(new URLSearchParams(bytes.toString('latin1'))),
    },
    bodyLimit: 20_000,
    replies: { 204: { description: 'ended; recorded in the audit log', contentType: 'none' } },
    problems: ['forbidden', 'not_found', 'unavailable'],
    handle: async ({ context, actor, body }) => {
      const { provider } = oidcOf(context);
      try {
        await logOutByProvider(context.vault, provider, actor, body.logout_token);
      } catch (error) {
        if (!(error instanceof OidcRefusal)) throw error;
        const { log } = context.vault;
        log.warn({ ...error.facts, ip: actor.ip }, `oidc logout refused: ${error.reason}`);
        const code = error.code === 'provider_unreachable' ? 'unavailable' : 'invalid_request';
        throw new Problem(code, { detail: 'The logout token is not valid, or cannot be checked now.' });
      }
      return { status: 204, headers: { 'Cache-Control': 'no-store' }, body: '' };
    },
  }),
];

/** The error where the provider cannot be used. */
export function providerUnavailable(cause: OidcRefusal): Problem {
  return new Problem('unavailable', {
    detail: 'The identity provider cannot be used now; the log of the vault has the reason.',
    hint: 'Retry in a moment, or sign in with a password.',
    cause,
  });
}

/** The sign-in by OpenID Connect. Throws `not_found` if no provider is set up. */
export function oidcOf({ oidc }: ServerContext): OidcSignIn {
  if (oidc !== undefined) return oidc;
  throw new Problem('not_found', { detail: 'Sign-in by OpenID Connect is not set up.' });
}

function redirect(location: string, cookie: string): Reply {
  return {
    status: 303,
    headers: { 'Cache-Control': 'no-store', Location: location, 'Set-Cookie': cookie },
    body: '',
  };
}
