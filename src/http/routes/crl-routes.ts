/**
 * The CRLs of private CAs, what links their roots, and the roots of those with a name, for everyone: also over plain
 * HTTP, which the URLs in certificates use.
 */
import { Problem } from '../../base/problem.ts';
import { crlPath } from '../../domain/private-ca/crl-address.ts';
import { crossPemOf, privateCaNamed, rootPemOf } from '../../domain/private-ca/local-ca.ts';
import { noneMatch } from '../request/conditional-request.ts';
import type { WholeReply } from '../request/reply.ts';
import { type Call, type Route, route } from '../request/route.ts';
import type { ServerContext } from '../request/server-context.ts';

const access = { kind: 'public' } as const;

const replies = {
  200: { description: 'DER', contentType: 'application/pkix-crl', headers: ['ETag'] },
  304: {
    description: 'the CRL still has the entity tag in If-None-Match',
    contentType: 'none',
    headers: ['ETag'],
  },
} as const;

const pemReplies = {
  200: { description: 'PEM', contentType: 'application/x-pem-file', headers: ['Content-Disposition'] },
} as const;

export const crlRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/client/ca.crl',
    id: 'getCrl',
    summary: 'Download the CRL of the intermediate with which the private CA issues at present',
    access,
    replies,
    problems: [],
    handle: async ({ context, ifNoneMatch }) => crlReply(await context.crls.current(), ifNoneMatch),
  }),
  route({
    method: 'GET',
    path: crlPath('{id}'),
    id: 'getCrlOfCaCertificate',
    summary: 'Download the CRL of one root or intermediate; certificates of the private CA name it',
    access,
    replies,
    problems: ['not_found'],
    handle: async ({ context, ifNoneMatch, params: { id = '' } }) => {
      const crl = /^[1-9]\d{0,14}$/.test(id) ? await context.crls.of(Number(id)) : undefined;
      if (crl === undefined) throw new Problem('not_found');
      return crlReply(crl, ifNoneMatch);
    },
  }),
  route({
    method: 'GET',
    path: '/client/ca-crls.pem',
    id: 'getAllCrls',
    summary: 'Download the CRLs of the root and all its intermediates in one file',
    access,
    replies: {
      200: { description: 'PEM', contentType: 'application/x-pem-file', headers: ['ETag'] },
      304: replies[304],
    },
    problems: [],
    handle: async ({ context, ifNoneMatch }) =>
      crlReply(await context.crls.all(), ifNoneMatch, 'application/x-pem-file'),
  }),
  route({
    method: 'GET',
    path: '/client/ca-cross.crt',
    id: 'getCrossCertificates',
    summary:
      'Download the certificates that link the roots of the built-in private CA, for clients that trust only one of them',
    access,
    replies: pemReplies,
    problems: ['not_found'],
    handle: async ({ context }) => crossReply(await crossPemOf(context.vault)),
  }),
];

/** Those of the private CA in the path, also of the built-in one, which has shorter paths too. */
export const namedCaRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/client/cas/{name}/ca.crt',
    id: 'getPrivateCaRootOf',
    summary: 'Download the root certificates of a private CA by the name of its issuer',
    access,
    replies: {
      200: { description: 'PEM', contentType: 'application/x-pem-file', headers: ['Content-Disposition'] },
    },
    problems: ['not_found'],
    handle: async ({ context, params }) =>
      rootReply(await rootPemOf(context.vault, await named(context, params))),
  }),
  route({
    method: 'GET',
    path: '/client/cas/{name}/ca.crl',
    id: 'getCrlOf',
    summary: 'Download the CRL of the intermediate with which a private CA issues at present',
    access,
    replies,
    problems: ['not_found'],
    handle: async ({ context, ifNoneMatch, params }) =>
      crlReply(await context.crls.current(await named(context, params)), ifNoneMatch),
  }),
  route({
    method: 'GET',
    path: '/client/cas/{name}/ca-crls.pem',
    id: 'getAllCrlsOf',
    summary: 'Download the CRLs of the root of a private CA and all its intermediates in one file',
    access,
    replies: {
      200: { description: 'PEM', contentType: 'application/x-pem-file', headers: ['ETag'] },
      304: replies[304],
    },
    problems: ['not_found'],
    handle: async ({ context, ifNoneMatch, params }) =>
      crlReply(await context.crls.all(await named(context, params)), ifNoneMatch, 'application/x-pem-file'),
  }),
  route({
    method: 'GET',
    path: '/client/cas/{name}/ca-cross.crt',
    id: 'getCrossCertificatesOf',
    summary: 'Download the certificates that link the roots of a private CA',
    access,
    replies: pemReplies,
    problems: ['not_found'],
    handle: async ({ context, params }) =>
      crossReply(await crossPemOf(context.vault, await named(context, params))),
  }),
];

async function named(
  { vault }: ServerContext,
  { name = '' }: Call['params'],
): Promise<{ readonly id: number }> {
  const ca = await privateCaNamed(vault, name);
  if (ca === undefined) throw new Problem('not_found', { detail: 'No private CA has this name.' });
  return ca;
}

function crossReply(body: string): WholeReply {
  if (body === '') throw new Problem('not_found', { detail: 'This private CA has had one root only.' });
  return rootReply(body, 'ca-cross.crt');
}

/** The answer with roots in PEM. */
export function rootReply(body: string, filename = 'ca.crt'): WholeReply {
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/x-pem-file',
      'Content-Disposition': `attachment; filename="${filename}"`,
      'Cache-Control': 'no-cache',
    },
    body,
  };
}

function crlReply(
  { body, etag }: { readonly body: Buffer; readonly etag: string },
  ifNoneMatch: string | undefined,
  type = 'application/pkix-crl',
): WholeReply {
  const headers = { ETag: etag, 'Cache-Control': 'no-cache' };
  if (noneMatch(ifNoneMatch, etag)) return { status: 304, headers, body: '' };
  return { status: 200, headers: { ...headers, 'Content-Type': type }, body };
}
