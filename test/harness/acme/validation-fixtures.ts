/** What the validation of challenges is tried with: a DNS, servers on loopback that say anything, and one challenge. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { realWorld, type World } from '../../../src/base/world.ts';
import { systemResolver } from '../../../src/dns/resolver/system-resolver.ts';
import { AcmeProblem } from '../../../src/domain/acme-server/protocol/acme-problem.ts';
import { validateChallenge } from '../../../src/domain/acme-server/validation/validation.ts';
import type {
  ChallengeToValidate,
  ValidationContext,
} from '../../../src/domain/acme-server/validation/validation-context.ts';
import { type ValidationRules, validationGuard } from '../../../src/net/validation-guard.ts';
import { type FakeDns, type FakeRecords, fakeDns } from '../dns/fake-dns.ts';
import { loopbackAllowed, loopbackGuard } from '../loopback-guard.ts';

type After = Pick<TestContext, 'after'>;

/** The example of RFC 8555 §8.3. */
export const token = 'LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0';
export const keyAuthorization = `${token}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`;
export const challengePath = `/.well-known/acme-challenge/${token}`;

const usual: ChallengeToValidate = {
  type: 'http-01',
  identifier: 'www.example.test',
  token,
  keyAuthorization,
  accountUri: 'https://vault.example.test/acme/local-ca/account/1',
};

export type Validator = {
  readonly dns: FakeDns;
  /** Where the servers of the test are. */
  readonly ports: { http: number; tls: number };
  /** The problem, or undefined if the challenge is valid. */
  readonly validate: (
    challenge?: Partial<ChallengeToValidate>,
    signal?: AbortSignal,
  ) => Promise<AcmeProblem | undefined>;
  /** Fails unless there is a problem of this type whose detail matches. */
  readonly refused: (
    type: AcmeProblem['type'],
    detail: RegExp,
    challenge?: Partial<ChallengeToValidate>,
  ) => Promise<void>;
};

/** A validator that may connect to loopback, unless `rules` say otherwise. */
export async function validator(
  t: After,
  records: FakeRecords,
  {
    rules = {},
    caaIdentities = [],
    world = realWorld,
  }: { rules?: Partial<ValidationRules>; caaIdentities?: readonly string[]; world?: World } = {},
): Promise<Validator> {
  const dns = await fakeDns(t, records);
  const ports = { http: 1, tls: 1 };
  const context: ValidationContext = {
    world,
    validation: {
      resolver: systemResolver(dns.server, { timeoutMs: 500, tries: 1 }, loopbackGuard),
      guard: validationGuard({ allowed: loopbackAllowed, forbidden: [], ...rules }),
      ports,
      caaIdentities,
      userAgent: 'vault-test (ACME validation)',
    },
  };
  const validate: Validator['validate'] = async (challenge = {}, signal = new AbortController().signal) => {
    try {
      await validateChallenge(context, { ...usual, ...challenge }, signal);
      return undefined;
    } catch (error) {
      if (error instanceof AcmeProblem) return error;
      throw error;
    }
  };
  const refused: Validator['refused'] = async (type, detail, challenge) => {
    const problem = await validate(challenge);
    assert.equal(problem?.type, type, String(problem));
    assert.match(problem?.message ?? '', detail);
  };
  return { dns, ports, validate, refused };
}

/** An HTTP server on 127.0.0.1 that keeps what it was asked. */
export async function webServer(
  t: After,
  listener: RequestListener,
): Promise<{ port: number; requests: Pick<IncomingMessage, 'url' | 'headers'>[] }> {
  const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = [];
  const server = createServer((request, response) => {
    requests.push({ url: request.url, headers: request.headers });
    listener(request, response);
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: await listening(server), requests };
}

/** The same with HTTPS, and a certificate that nobody trusts. */
export async function secureWebServer(t: After, options: TlsOptions, listener: RequestListener) {
  const server = createSecureServer(options, listener);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return listening(server);
}

/** A server that speaks as the function lets it. */
export async function rawServer(t: After, onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    onSocket(socket);
  });
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return listening(server);
}

/** A TLS server that only shakes hands. Returns its port, and the server names that it was asked for. */
export async function tlsServer(t: After, options: TlsOptions): Promise<{ port: number; names: string[] }> {
  const names: string[] = [];
  const SNICallback: TlsOptions['SNICallback'] = (name, done) => {
    names.push(name);
    done(null);
  };
  const server = createTlsServer({ ...options, SNICallback }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.end();
  }).on('tlsClientError', (_, socket) => socket.destroy());
  t.after(() => server.close());
  return { port: await listening(server), names };
}

async function listening(server: ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
