/** Certificates that ACME clients ordered: downloaded with each chain (RFC 8555 §7.4.2), and revoked (§7.6). */
import type { Problem } from '../../base/problem.ts';
import {
  revocationInput,
  revokeByAccount,
  revokeByKey,
} from '../../domain/acme-server/certificates/certificate-revocation.ts';
import { downloadedChains } from '../../domain/acme-server/orders/certificate-download.ts';
import { nothingHere } from '../../domain/acme-server/orders/orders.ts';
import type { WholeReply } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { answerHeaders, signedRoute } from './acme-protocol.ts';
import { numberIn } from './acme-urls.ts';
import {
  type AccountCall,
  byAccount,
  forAccount,
  payloadOf,
  readSigned,
  requireRead,
} from './signed-calls.ts';

const chainReplies = {
  200: { description: 'PEM', contentType: 'application/pem-certificate-chain', headers: answerHeaders },
} as const;

export const acmeCertificateRoutes: readonly Route[] = [
  route({
    ...signedRoute,
    path: '/acme/{issuer}/certificate/{id}/{version}',
    id: 'downloadAcmeCertificate',
    summary: 'Download a certificate with its chain; Link names alternate chains',
    replies: chainReplies,
    handle: (call) => forAccount(call, (given) => chainReply(given, 0)),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/certificate/{id}/{version}/{alternate}',
    id: 'downloadAcmeCertificateAlternate',
    summary: 'Download a certificate with an alternate chain',
    replies: chainReplies,
    handle: (call) => forAccount(call, (given) => chainReply(given, numberIn(call.params.alternate))),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/revoke-cert',
    id: 'revokeAcmeCertificate',
    summary: 'Revoke a certificate: as an account of its client, or with its own key',
    replies: { 200: { description: 'revoked', contentType: 'none', headers: answerHeaders } },
    handle: async (call) => {
      const { vault, acme } = call.context;
      const request = await readSigned(call);
      const input = payloadOf(request.message, revocationInput);
      if (request.message.header.kid !== undefined) {
        return byAccount(call, request, async ({ caller }) => {
          await revokeByAccount(vault, caller, input, call.gone());
          return done;
        });
      }
      const { keyLimits } = call.context;
      refuseExcess(keyLimits.revocationExcessOf(call.actor.ip));
      const admit = (id: number, version: number) =>
        refuseExcess(keyLimits.revocationExcessOfVersion(id, version));
      await revokeByKey(vault, acme.keys, request, input, admit, call.gone());
      return done;
    },
  }),
];

function refuseExcess(excess: Problem | undefined): void {
  if (excess !== undefined) throw excess;
}

const done: WholeReply = { status: 200, headers: {}, body: '' };

/** The certificate with one of its chains, and the way to the others (§7.4.2). */
async function chainReply(given: AccountCall, index: number | undefined): Promise<WholeReply> {
  requireRead(given);
  const { call, caller, urls } = given;
  const [id, version] = [numberIn(call.params.id), numberIn(call.params.version)];
  const chains = await downloadedChains(call.context.vault, caller, id, version);
  const body = index === undefined ? undefined : chains[index];
  // The path of the usual chain has no number.
  const isUsualPath = call.params.alternate === undefined;
  if (body === undefined || id === undefined || version === undefined || isUsualPath !== (index === 0))
    throw nothingHere();
  const links = chains.flatMap((_, other) =>
    other === index ? [] : [`<${urls.certificate(id, version, other || undefined)}>;rel="alternate"`],
  );
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/pem-certificate-chain',
      ...(links.length > 0 && { Link: links.join(', ') }),
    },
    body,
  };
}
