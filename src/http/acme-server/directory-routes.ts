/** The directory of each issuer (RFC 8555 §7.1.1), and nonces (§7.2). */
import { second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { adviseRenewal } from '../../domain/acme-server/certificates/renewal-info.ts';
import { directoryProfiles } from '../../domain/acme-server/directory-profiles.ts';
import { json } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { acmeProtocol } from './acme-protocol.ts';
import { directorySchema, renewalInfoSchema } from './acme-schemas.ts';
import { issuerOf, urlsOf } from './signed-calls.ts';

const common = { access: { kind: 'public' }, problems: [], protocol: acmeProtocol } as const;

export const acmeDirectoryRoutes: readonly Route[] = [
  route({
    ...common,
    method: 'GET',
    path: '/acme/{issuer}/directory',
    id: 'getAcmeDirectory',
    summary: 'Return the ACME directory of an issuer: where its clients begin',
    replies: { 200: { description: 'the directory', schema: directorySchema, headers: ['Link'] } },
    handle: async (call) => {
      const profiles = await directoryProfiles(call.context.vault, await issuerOf(call));
      const { newNonce, newAccount, newOrder, revokeCert, keyChange, renewalInfo } = urlsOf(call);
      const { termsOfService } = call.context.acme;
      const meta = {
        ...(termsOfService !== undefined && { termsOfService }),
        externalAccountRequired: true,
        ...(Object.keys(profiles).length > 0 && { profiles }),
      };
      return json(200, { newNonce, newAccount, newOrder, revokeCert, keyChange, renewalInfo, meta });
    },
  }),
  route({
    ...common,
    method: 'GET',
    path: '/acme/{issuer}/renewal-info/{certificate}',
    id: 'getAcmeRenewalInfo',
    summary: 'Return when a certificate should be renewed',
    replies: {
      200: {
        description: 'the window within which to renew; one in the past means at once',
        schema: renewalInfoSchema,
        headers: ['Link', 'Retry-After'],
      },
    },
    handle: async (call) => {
      const issuer = await issuerOf(call);
      const advice = await adviseRenewal(call.context.vault, issuer, call.params.certificate ?? '');
      const { start, end } = advice.window;
      const suggestedWindow = { start: formatTimestamp(start), end: formatTimestamp(end) };
      return json(
        200,
        { suggestedWindow },
        { 'Retry-After': String(Math.ceil(advice.retryAfterMs / second)) },
      );
    },
  }),
  route({
    ...common,
    method: 'GET',
    path: '/acme/{issuer}/new-nonce',
    id: 'getAcmeNonce',
    summary: 'Return a nonce in the header Replay-Nonce; for HEAD with status 200',
    replies: {
      200: { description: 'to HEAD', contentType: 'none', headers: ['Replay-Nonce', 'Link'] },
      204: { description: 'to GET', contentType: 'none', headers: ['Replay-Nonce', 'Link'] },
    },
    handle: async (call) => {
      await issuerOf(call);
      const headers = { 'Replay-Nonce': call.context.acme.nonces.fresh() };
      return { status: call.isHead ? 200 : 204, headers, body: '' };
    },
  }),
];
