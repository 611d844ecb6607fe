/** A mail server in the test process with EHLO, STARTTLS or implicit TLS, AUTH, and several mails per connection. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createSecureContext, createServer as createTlsServer, TLSSocket } from 'node:tls';
import { encodePem } from '../../../src/crypto/pem.ts';
import { identifier, makeChain, makeLeaf } from '../ca/private-chain.ts';

export type TakenMail = {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body, with lines that end in \n. */
  readonly text: string;
  readonly wasEncrypted: boolean;
  /** The authenticated user, or undefined. */
  readonly user: string | undefined;
};

export type SmtpServer = {
  readonly port: number;
  /** PEM of the root of its certificate. */
  readonly ca: string;
  readonly mails: TakenMail[];
  /** All lines from clients, except mails and credentials. */
  readonly said: string[];
  /** Replies instead of the usual ones, by the first word of the command; each is used once. */
  readonly answers: Map<string, string>;
};

export type SmtpOptions = {
  /** STARTTLS is offered unless false; `tls` uses implicit TLS. */
  readonly security?: 'starttls' | 'tls' | 'none';
  /** The allowed users; undefined allows everyone. */
  readonly user?: string;
  readonly password?: string;
};

/** Starts a server on 127.0.0.1. It stops when the test ends. */
export async function smtpServer(
  t: Pick<TestContext, 'after'>,
  { security = 'starttls', user, password }: SmtpOptions = {},
): Promise<SmtpServer> {
  const chain = await makeChain();
  const leaf = await makeLeaf(chain.intermediate, {
    identifiers: ['localhost', '127.0.0.1'].map(identifier),
  });
  const pem = (der: Buffer) => encodePem('CERTIFICATE', der);
  const tls = {
    cert: `${pem(leaf.certificate)}${pem(chain.intermediate.certificate)}`,
    key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
  };
  const state = {
    mails: [] as TakenMail[],
    said: [] as string[],
    answers: new Map<string, string>(),
  };
  const expected = user === undefined ? undefined : { user, password: password ?? '' };
  const sockets = new Set<Socket>();
  const talk = (socket: Socket, isTls: boolean) => {
    sockets.add(socket);
    new Dialogue(socket, isTls, security, expected, tls, state).begin();
  };
  const server: Server =
    security === 'tls'
      ? createTlsServer(tls, (socket) => talk(socket, true))
      : createServer((socket) => talk(socket, false));
  server.on('tlsClientError', () => undefined);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as AddressInfo).port, ca: pem(chain.root.certificate), ...state };
}

type Shared = Pick<SmtpServer, 'mails' | 'said' | 'answers'>;

class Dialogue {
  #socket: Socket;
  #isTls: boolean;
  readonly #security: string;
  readonly #expected: { readonly user: string; readonly password: string } | undefined;
  readonly #tls: { readonly cert: string; readonly key: string };
  readonly #shared: Shared;
  #rest = '';
  #user: string | undefined;
  #from = '';
  #to: string[] = [];
  #mail: string[] | undefined;
  /** The meaning of the next line, if it is not a command. */
  #awaited: ((line: string) => void) | undefined;

  constructor(
    socket: Socket,
    isTls: boolean,
    security: string,
    expected: { readonly user: string; readonly password: string } | undefined,
    tls: { readonly cert: string; readonly key: string },
    shared: Shared,
  ) {
    this.#socket = socket;
    this.#isTls = isTls;
    this.#security = security;
    this.#expected = expected;
    this.#tls = tls;
    this.#shared = shared;
  }

  begin(): void {
    this.#listen();
    this.#say('220 mail.test ESMTP');
  }

  #listen(): void {
    this.#socket.on('error', () => undefined);
    this.#socket.on('data', (chunk: Buffer) => {
      const lines = `${this.#rest}${chunk.toString('utf8')}`.split('\r\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(line);
    });
  }

  #say(text: string): void {
    this.#socket.write(`${text}\r\n`);
  }

  #hear(line: string): void {
    if (this.#mail !== undefined) this.#hearMail(line, this.#mail);
    else if (this.#awaited !== undefined) {
      const awaited = this.#awaited;
      this.#awaited = undefined;
      awaited(line);
    } else this.#command(line);
  }

  #hearMail(line: string, mail: string[]): void {
    if (line !== '.') {
      mail.push(line.startsWith('.') ? line.slice(1) : line);
      return;
    }
    this.#mail = undefined;
    this.#shared.mails.push({
      from: this.#from,
      to: this.#to,
      text: `${mail.join('\n')}\n`,
      wasEncrypted: this.#isTls,
      user: this.#user,
    });
    this.#say('250 taken');
  }

  #command(line: string): void {
    const [verb = ''] = line.toUpperCase().split(' ', 1);
    this.#shared.said.push(verb === 'AUTH' ? 'AUTH' : line);
    const answer = this.#shared.answers.get(verb);
    if (answer !== undefined) {
      this.#shared.answers.delete(verb);
      this.#say(answer);
      return;
    }
    const offered = [
      'mail.test',
      ...(this.#security === 'starttls' && !this.#isTls ? ['STARTTLS'] : []),
      ...(this.#expected === undefined ? [] : ['AUTH PLAIN']),
    ];
    if (verb === 'EHLO')
      this.#say(offered.map((word, at) => `250${at === offered.length - 1 ? ' ' : '-'}${word}`).join('\r\n'));
    else if (verb === 'STARTTLS' && offered.includes(verb)) this.#upgrade();
    else if (verb === 'STARTTLS') this.#say('502 not here');
    else if (verb === 'AUTH') this.#authenticate(line.split(' ')[2] ?? '');
    else if (verb === 'MAIL') this.#begin(/<(.*)>/.exec(line)?.[1] ?? '');
    else if (verb === 'RCPT') this.#recipient(/<(.*)>/.exec(line)?.[1] ?? '');
    else if (verb === 'DATA') {
      this.#mail = [];
      this.#say('354 go on');
    } else if (verb === 'QUIT') this.#socket.end('221 bye\r\n');
    else this.#say('250 ok');
  }

  #upgrade(): void {
    this.#say('220 go on');
    this.#socket.removeAllListeners('data');
    this.#socket = new TLSSocket(this.#socket, {
      isServer: true,
      secureContext: createSecureContext(this.#tls),
    });
    this.#isTls = true;
    this.#rest = '';
    this.#listen();
  }

  #authenticate(initial: string): void {
    const judge = (base64: string) => {
      const [, user, password] = Buffer.from(base64, 'base64').toString().split('\0');
      const isRight = user === this.#expected?.user && password === this.#expected?.password;
      if (isRight) this.#user = user;
      this.#say(isRight ? '235 welcome' : `535 5.7.8 wrong password ${password}`);
    };
    if (initial !== '') judge(initial);
    else {
      this.#awaited = judge;
      this.#say('334 ');
    }
  }

  #begin(from: string): void {
    if (this.#expected !== undefined && this.#user === undefined) {
      this.#say('530 sign in first');
      return;
    }
    this.#from = from;
    this.#to = [];
    this.#say('250 ok');
  }

  #recipient(to: string): void {
    this.#to.push(to);
    this.#say('250 ok');
  }
}
