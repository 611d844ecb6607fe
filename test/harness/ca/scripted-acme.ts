/**
 * An ACME server in the test process: a correct CA that checks signatures, nonces and bindings and issues real
 * certificates. Tests can override its responses.
 *
 *     const ca = await scriptedAcme(t, { profiles: { shortlived: 'six days' } });
 *     ca.override('newOrder', problem('rateLimited', 'slow down', { headers: { 'Retry-After': '60' } }));
 *     …
 *     assert.deepEqual(ca.kinds(), ['directory', 'newNonce', 'newOrder']);
 */
import { randomBytes } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { encodePem } from '../../../src/crypto/pem.ts';
import { identifier, makeChain, makeLeaf } from './private-chain.ts';
import {
  accountBody,
  problemBody,
  ScriptedCa,
  type ScriptedCaOptions,
  type Validator,
} from './scripted-acme-ca.ts';
import { Refusal, type Verified, verifyRequest } from './scripted-acme-jws.ts';

export type AcmeKind =
  | 'directory'
  | 'newNonce'
  | 'newAccount'
  | 'account'
  | 'newOrder'
  | 'order'
  | 'authorization'
  | 'challenge'
  | 'finalize'
  | 'certificate'
  | 'alternate'
  | 'revokeCert'
  | 'keyChange'
  | 'renewalInfo'
  | 'other';

export type ScriptedReply = {
  /** By default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Objects are sent as JSON, by default as application/json. */
  readonly body?: string | Buffer | object;
  /** Cuts the connection after this many bytes of the response, including the status line. */
  readonly cutAfter?: number;
  /** Cuts the connection with a reset. */
  readonly reset?: boolean;
  /** Delays the response until this resolves. */
  readonly until?: Promise<unknown>;
};

export type ScriptedRequest = {
  readonly kind: AcmeKind;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The verified header and payload of signed requests. */
  signed: Verified | undefined;
  /** The status of the response. */
  status: number | undefined;
};

/** A reply instead of the usual one, or a function that may call the usual handler. */
export type Override =
  | ScriptedReply
  | ((
      request: ScriptedRequest,
      usual: () => Promise<ScriptedReply>,
    ) => ScriptedReply | Promise<ScriptedReply>);

export type ScriptedAcme = {
  readonly directoryUrl: string;
  readonly origin: string;
  /** PEM of the root, with `tls`. */
  readonly ca: string | undefined;
  /** The state of the CA, which tests may read and change. */
  readonly state: ScriptedCa;
  /** All requests in order. */
  readonly requests: ScriptedRequest[];
  /** Their kinds. */
  readonly kinds: () => AcmeKind[];
  /** Overrides the responses to the next requests of this kind, one each. */
  readonly override: (kind: AcmeKind, ...overrides: readonly Override[]) => void;
  /** Overrides the responses to all requests of this kind until the returned function is called. */
  readonly overrideAll: (kind: AcmeKind, override: Override) => () => void;
  /** The size of the last response of this kind in bytes, including the status line. */
  readonly sizeOf: (kind: AcmeKind) => number;
};

export type ScriptedAcmeOptions = ScriptedCaOptions & {
  /** Serves HTTPS with a private CA, whose root is `ca`. By default plain HTTP on 127.0.0.1. */
  readonly tls?: boolean;
  /** Sends nonces only where required: in response to HEAD newNonce and with errors. */
  readonly fewNonces?: boolean;
};

/** A problem document as a reply; by default with the usual status of the type. */
export function problem(
  type: string,
  detail: string,
  extras: {
    readonly status?: number;
    readonly members?: Readonly<Record<string, unknown>>;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): ScriptedReply {
  return {
    status: extras.status ?? statuses[type] ?? 400,
    headers: { 'Content-Type': 'application/problem+json', ...extras.headers },
    body: { type: `urn:ietf:params:acme:error:${type}`, detail, ...extras.members },
  };
}

/** Validates http-01 challenges by requesting them from this port of 127.0.0.1, for any name. */
export function http01At(port: number): Validator {
  return async ({ type, token, identifier: host, keyAuthorization }) => {
    if (type !== 'http-01') return new Refusal('unauthorized', `${type} cannot be validated`);
    const url = `http://127.0.0.1:${port}/.well-known/acme-challenge/${token}`;
    const found = await fetch(url, { headers: { 'X-Forwarded-Host': host } }).catch(() => undefined);
    if (found === undefined) return new Refusal('connection', `${host} cannot be reached`);
    const text = (await found.text()).trimEnd();
    return text === keyAuthorization
      ? undefined
      : new Refusal('unauthorized', `${host} answered with ${text}`);
  };
}

const statuses: Readonly<Record<string, number>> = {
  alreadyReplaced: 409,
  conflict: 409,
  externalAccountRequired: 403,
  orderNotReady: 403,
  rateLimited: 429,
  unauthorized: 403,
  userActionRequired: 403,
};

/** Starts the server. It stops when the test ends. */
export async function scriptedAcme(
  t: Pick<TestContext, 'after'>,
  { tls = false, fewNonces = false, ...options }: ScriptedAcmeOptions = {},
): Promise<ScriptedAcme> {
  const requests: ScriptedRequest[] = [];
  const nonces = new Set<string>();
  const queues = new Map<AcmeKind, Override[]>();
  const standing = new Map<AcmeKind, Override>();
  const sizes = new Map<AcmeKind, number>();
  let state: ScriptedCa;

  const listen = (incoming: IncomingMessage, response: ServerResponse) => {
    answer(incoming, response).catch((error: unknown) => {
      response.destroy();
      throw error;
    });
  };
  const secured = tls ? await tlsOptions() : undefined;
  const server = secured ? createHttpsServer(secured.options, listen) : createHttpServer(listen);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const origin = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  state = await ScriptedCa.start(origin, options);

  const newNonce = (): string => {
    const nonce = randomBytes(12).toString('base64url');
    nonces.add(nonce);
    return nonce;
  };

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? '';
    const request: ScriptedRequest = {
      ...{ kind: kindOf(path), method: incoming.method ?? '', path, headers: incoming.headers },
      ...{ signed: undefined, status: undefined },
    };
    requests.push(request);
    const chunks: Buffer[] = await Array.fromAsync(incoming as AsyncIterable<Buffer>).catch(() => []);
    const usual = () => defaultReply(request, Buffer.concat(chunks));
    const override = queues.get(request.kind)?.shift() ?? standing.get(request.kind);
    const reply = await (typeof override === 'function' ? override(request, usual) : (override ?? usual()));
    request.status = reply.status ?? 200;
    await reply.until;
    send(request, response, reply);
  }

  async function defaultReply(request: ScriptedRequest, body: Buffer): Promise<ScriptedReply> {
    try {
      if (!request.headers['user-agent']) throw new Refusal('malformed', 'User-Agent is missing');
      if (request.method !== 'POST') return unsignedReply(request);
      if (request.headers['content-type'] !== 'application/jose+json') {
        throw new Refusal('malformed', 'the content type is wrong', { status: 415 });
      }
      const url = `${origin}${request.path}`;
      request.signed = await verifyRequest(body, url, (kid) => state.keyOf(kid));
      if (!nonces.delete(request.signed.header.nonce ?? '')) {
        throw new Refusal('badNonce', 'the nonce is unknown or was used');
      }
      return await signedReply(request, request.signed, url);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const status = (error.members.status as number | undefined) ?? statuses[error.type] ?? 400;
      return {
        status,
        headers: { 'Content-Type': 'application/problem+json', ...error.headers },
        body: problemBody(error) as object,
      };
    }
  }

  function unsignedReply({ kind, path }: ScriptedRequest): ScriptedReply {
    if (kind === 'directory') return { body: state.directory() as object };
    if (kind === 'newNonce') return { status: 200, headers: { 'Cache-Control': 'no-store' } };
    if (kind !== 'renewalInfo') throw new Refusal('malformed', 'POST only', { status: 405 });
    const body = state.renewalInfo(path.slice('/renewal-info/'.length)) as object;
    return { body, headers: { 'Retry-After': '21600' } };
  }

  async function signedReply(
    { kind }: ScriptedRequest,
    signed: Verified,
    url: string,
  ): Promise<ScriptedReply> {
    const order = state.orders.get(url.replace(/\/(finalize|certificate|alternate\/\d+)$/, ''));
    const json = (body: unknown, extras: ScriptedReply = {}): ScriptedReply => ({
      body: body as object,
      ...extras,
    });
    if (kind === 'newAccount') {
      const { isNew, account } = await state.newAccount(signed);
      return json(accountBody(account), { status: isNew ? 201 : 200, headers: { Location: account.url } });
    }
    if (kind === 'account') return json(state.updateAccount(url, signed));
    if (kind === 'keyChange') return json(await state.changeKey(signed));
    if (kind === 'revokeCert') {
      state.revoke(signed);
      return { body: '' };
    }
    if (kind === 'newOrder') {
      const made = state.newOrder(signed);
      return json(state.orderBody(made), { status: 201, headers: { Location: made.url } });
    }
    if (kind === 'challenge') return json(state.challengeBody(state.answer(url, signed)));
    const authorization = state.authorizations.get(url);
    if (authorization !== undefined) {
      if (signed.payload?.status === 'deactivated') authorization.status = 'deactivated';
      return json(state.authorizationBody(authorization));
    }
    if (order === undefined) throw new Refusal('malformed', 'unknown resource', { status: 404 });
    if (order.account !== signed.header.kid)
      throw new Refusal('unauthorized', 'the order belongs to another account');
    if (kind === 'finalize') {
      await state.finalize(order, signed);
      return json(state.orderBody(order));
    }
    if (kind === 'order') return json(state.orderBody(order));
    const chains = state.chains(order);
    const links = chains.slice(1).map((_, index) => `<${order.url}/alternate/${index + 1}>;rel="alternate"`);
    const Link = [`<${origin}/directory>;rel="index"`, ...(kind === 'certificate' ? links : [])].join(', ');
    const number = kind === 'alternate' ? Number(url.slice(url.lastIndexOf('/') + 1)) : 0;
    return {
      body: chains[number] ?? '',
      headers: { 'Content-Type': 'application/pem-certificate-chain', Link },
    };
  }

  function send(
    { kind, method, status = 200 }: ScriptedRequest,
    response: ServerResponse,
    reply: ScriptedReply,
  ): void {
    const { body = '', headers = {}, cutAfter, reset = false } = reply;
    const isJson = typeof body === 'object' && !Buffer.isBuffer(body);
    const bytes = Buffer.isBuffer(body)
      ? body
      : Buffer.from(isJson ? JSON.stringify(body) : (body as string));
    const needsNonce = !fewNonces || kind === 'newNonce' || status >= 400;
    const all: Record<string, string> = {
      ...(isJson && { 'Content-Type': 'application/json' }),
      ...(needsNonce && !['directory', 'renewalInfo'].includes(kind) && { 'Replay-Nonce': newNonce() }),
      'Content-Length': String(bytes.length),
      Date: new Date(options.now?.() ?? Date.now()).toUTCString(),
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
    const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}`, ...lines, '', ''].join('\r\n');
    const raw = Buffer.concat([Buffer.from(head), method === 'HEAD' ? Buffer.alloc(0) : bytes]);
    sizes.set(kind, raw.length);
    const { socket } = response;
    if (cutAfter === undefined || socket === null) {
      response.writeHead(status, all).end(method === 'HEAD' ? undefined : bytes);
      return;
    }
    socket.write(raw.subarray(0, cutAfter), () => (reset ? socket.resetAndDestroy() : socket.destroy()));
  }

  return {
    directoryUrl: `${origin}/directory`,
    origin,
    ca: secured?.root,
    state,
    requests,
    kinds: () => requests.map(({ kind }) => kind),
    override: (kind, ...overrides) => queues.set(kind, [...(queues.get(kind) ?? []), ...overrides]),
    overrideAll: (kind, override) => {
      standing.set(kind, override);
      return () => standing.delete(kind);
    },
    sizeOf: (kind) => sizes.get(kind) ?? 0,
  };
}

function kindOf(path: string): AcmeKind {
  const [, first, , last] = path.split('/');
  const kinds: Readonly<Record<string, AcmeKind>> = {
    directory: 'directory',
    'new-nonce': 'newNonce',
    'new-account': 'newAccount',
    account: 'account',
    'new-order': 'newOrder',
    order: 'order',
    authorization: 'authorization',
    challenge: 'challenge',
    finalize: 'finalize',
    certificate: 'certificate',
    alternate: 'alternate',
    'revoke-cert': 'revokeCert',
    'key-change': 'keyChange',
    'renewal-info': 'renewalInfo',
  };
  return kinds[(first === 'order' && last) || (first ?? '')] ?? 'other';
}

async function tlsOptions() {
  const chain = await makeChain();
  const leaf = await makeLeaf(chain.intermediate, {
    identifiers: ['127.0.0.1', 'localhost'].map(identifier),
  });
  const pem = (...ders: readonly Buffer[]) => ders.map((der) => encodePem('CERTIFICATE', der)).join('');
  return {
    root: pem(chain.root.certificate),
    options: {
      cert: pem(leaf.certificate, chain.intermediate.certificate),
      key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
    },
  };
}
