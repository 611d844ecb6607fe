/**
 * How the ACME server reads bodies and answers: only signed requests, problems as RFC 8555 §6.7 has them, and with each
 * answer the nonce of the next request and the way to the directory.
 */

import type { IncomingMessage } from 'node:http';
import { second } from '../../base/duration.ts';
import { escapedJson } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import { KeyInUse } from '../../domain/acme-server/accounts/key-change.ts';
import { writtenIdentifier } from '../../domain/acme-server/orders/order-identifiers.ts';
import {
  AcmeProblem,
  type AcmeProblemType,
  acmeProblemUrn,
} from '../../domain/acme-server/protocol/acme-problem.ts';
import { parseObject } from '../../domain/acme-server/protocol/signed-messages.ts';
import { clientOriginOf } from '../request/base-url.ts';
import type { WholeReply } from '../request/reply.ts';
import { readRawBody } from '../request/request-body.ts';
import type { DeclaredFailure, Protocol, ProtocolPlace } from '../request/route.ts';
import { acmeProblemSchema, signedSchema } from './acme-schemas.ts';
import { type AcmeUrls, acmeUrls } from './acme-urls.ts';

/** A CSR with a hundred long names takes about 40 KB. */
const bodyLimit = 65_536;
const bodyType = 'application/jose+json';
/** Where the error does not say. */
const defaultPauseSeconds = 5;

/** Requests that no route sees, such as those with headers that are too long, are answered without a nonce. */
const answered = ['Link'];
const paused = [...answered, 'Retry-After'];

const failures: Readonly<Record<number, DeclaredFailure>> = {
  400: { description: 'malformed, badNonce and other problems of RFC 8555 §6.7', headers: answered },
  401: { description: 'unauthorized: the account was deactivated', headers: answered },
  403: { description: 'unauthorized, orderNotReady and others', headers: answered },
  404: { description: 'malformed: there is no such resource', headers: answered },
  408: { description: 'malformed: the request did not arrive in time', headers: answered },
  409: {
    description: 'alreadyReplaced; or another account has the key, whose URL is in Location',
    headers: [...answered, 'Location'],
  },
  413: { description: 'malformed: the request is too large', headers: answered },
  415: { description: `malformed: the body is not ${bodyType}`, headers: answered },
  429: { description: 'rateLimited', headers: paused },
  500: { description: 'serverInternal', headers: answered },
  503: { description: 'serverInternal: retry in a moment', headers: paused },
};

export const acmeProtocol: Protocol = {
  bodyType,
  readBody,
  problemReply,
  complete,
  failures,
  problemSchema: acmeProblemSchema,
};

/** What all signed requests have in common. */
export const signedRoute = {
  method: 'POST',
  access: { kind: 'public' },
  problems: [],
  protocol: acmeProtocol,
  body: signedSchema,
} as const;

/** What each answer to them has. */
export const answerHeaders = ['Replay-Nonce', 'Link'];

async function readBody(request: IncomingMessage): Promise<unknown> {
  const [type = ''] = (request.headers['content-type'] ?? '').split(';', 1);
  if (type.trim().toLowerCase() !== bodyType) {
    throw new AcmeProblem('malformed', `The request must have "Content-Type: ${bodyType}".`, { status: 415 });
  }
  const json = parseObject(await readRawBody(request, bodyLimit));
  if (json === undefined) throw new AcmeProblem('malformed', 'The body must be a JWS as a JSON object.');
  return json;
}

/** The URLs of the directory of a request, for this client. */
export function urlsAt({ context, request, params }: ProtocolPlace): AcmeUrls {
  return acmeUrls(baseUrlOf({ context, request }), params.issuer ?? '');
}

function baseUrlOf({ context, request }: Pick<ProtocolPlace, 'context' | 'request'>): string {
  try {
    return clientOriginOf(request, context).baseUrl;
  } catch {
    // Proxies contradict each other about the client, which the request was refused for.
    return context.publicUrl ?? '';
  }
}

function problemReply(error: unknown, place: ProtocolPlace): WholeReply | undefined {
  if (error instanceof AcmeProblem) return replyTo(error, place);
  if (!(error instanceof Problem)) return undefined;
  const detail = error.body.detail;
  const pause = error.retryAfter === undefined ? {} : { retryAfterMs: error.retryAfter * second };
  return replyTo(new AcmeProblem(typeOf(error), detail, { status: error.status, ...pause }), place);
}

function typeOf({ status }: Problem): AcmeProblemType {
  if (status >= 500) return 'serverInternal';
  if (status === 429) return 'rateLimited';
  return status === 401 || status === 403 ? 'unauthorized' : 'malformed';
}

function replyTo(problem: AcmeProblem, place: ProtocolPlace): WholeReply {
  const { type, status, message: detail, identifier, subproblems, algorithms } = problem;
  const body = {
    type: acmeProblemUrn(type),
    detail,
    status,
    ...(identifier !== undefined && { identifier: writtenIdentifier(identifier) }),
    ...(algorithms !== undefined && { algorithms }),
    ...(subproblems.length > 0 && {
      subproblems: subproblems.map((one) => ({
        type: acmeProblemUrn(one.type),
        detail: one.detail,
        identifier: writtenIdentifier(one.identifier),
      })),
    }),
  };
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Replay-Nonce': place.context.acme.nonces.fresh(),
      ...pauseOf(problem),
      ...(problem instanceof KeyInUse && { Location: urlsAt(place).account(problem.accountId) }),
    },
    body: escapedJson(JSON.stringify(body)),
  };
}

function pauseOf({ status, retryAfterMs }: AcmeProblem): Readonly<Record<string, string>> {
  if (retryAfterMs !== undefined)
    return { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterMs / second))) };
  return status === 429 || status === 503 ? { 'Retry-After': String(defaultPauseSeconds) } : {};
}

function complete(reply: WholeReply, place: ProtocolPlace): WholeReply {
  const { method } = place.request;
  const links = [
    `<${urlsAt(place).directory}>;rel="index"`,
    ...(reply.headers.Link === undefined ? [] : [reply.headers.Link]),
  ];
  const headers = { 'Cache-Control': 'no-store', ...reply.headers, Link: links.join(', ') };
  const needsNonce = method === 'POST' && reply.headers['Replay-Nonce'] === undefined;
  const nonce = needsNonce ? { 'Replay-Nonce': place.context.acme.nonces.fresh() } : {};
  return { ...reply, headers: { ...headers, ...nonce } };
}
