/**
 * Name servers in the test process, on loopback over UDP and TCP. One answers from a table or simulates errors; the
 * other receives single messages over TCP, as dynamic updates do, and answers with any bytes.
 */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, TRUNCATED_RESPONSE } from 'dns-packet';
import { freePort } from '../processes/port.ts';

export type FakeQuestion = { readonly name: string; readonly type: string; readonly over: 'udp' | 'tcp' };

/** Simulated errors. `truncated` affects UDP only; the whole answer is sent over TCP. */
export type FakeTrouble = 'SERVFAIL' | 'REFUSED' | 'silence' | 'garbage' | 'truncated';

/**
 * `TXT name`, `CNAME name`, `NS name`, `A name`: the data. A TXT record of several strings is a list, an SOA or CAA
 * record its fields.
 */
export type FakeRecords = Readonly<
  Record<string, readonly (string | readonly string[] | FakeSoa | FakeCaa)[]>
>;

export type FakeSoa = { readonly mname: string; readonly rname: string; readonly minimum: number };

export type FakeCaa = { readonly flags: number; readonly tag: string; readonly value: string };

export type FakeDns = {
  /** `127.0.0.1:PORT` */
  readonly server: string;
  /** The table, which may be changed at any time. */
  records: FakeRecords;
  /** Returns the simulated error for a query, if any. */
  trouble: (question: FakeQuestion) => FakeTrouble | undefined;
  readonly questions: FakeQuestion[];
};

/** Starts a server that, like a resolver, follows CNAME records in its table. It stops when the test ends. */
export async function fakeDns(t: Pick<TestContext, 'after'>, records: FakeRecords = {}): Promise<FakeDns> {
  const port = await freePort();
  const fake: FakeDns = {
    server: `127.0.0.1:${port}`,
    records,
    trouble: () => undefined,
    questions: [],
  };
  const udp = createSocket('udp4');
  udp.on('message', (message, sender) => {
    const answer = answerTo(fake, message, 'udp');
    if (answer !== undefined) udp.send(answer, sender.port, sender.address);
  });
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  t.after(() => udp.close());
  await listen(t, port, (message) => answerTo(fake, message, 'tcp'));
  return fake;
}

/** The reaction to a message: a response, a connection cut after these bytes (including the length), or no response. */
export type TcpReply = Buffer | { readonly cutAfter: Buffer } | undefined;

/** A server that accepts one message per connection without parsing it. Returns `127.0.0.1:PORT`. */
export async function fakeTcpDns(
  t: Pick<TestContext, 'after'>,
  answer: (message: Buffer) => TcpReply,
): Promise<string> {
  return `127.0.0.1:${await listen(t, 0, answer)}`;
}

/** The message with its length in front, as on TCP. */
export function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

async function listen(
  t: Pick<TestContext, 'after'>,
  port: number,
  answer: (message: Buffer) => TcpReply,
): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = Buffer.alloc(0);
    // A client that gives up resets the connection, which is not an error here.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const reply = answer(received.subarray(2, 2 + received.readUInt16BE(0)));
      if (Buffer.isBuffer(reply)) socket.write(withLength(reply));
      else if (reply !== undefined) socket.end(reply.cutAfter);
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await server[Symbol.asyncDispose]();
  });
  return (server.address() as AddressInfo).port;
}

const rcodes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 };

function answerTo(fake: FakeDns, message: Buffer, over: 'udp' | 'tcp'): Buffer | undefined {
  const query = decode(message);
  const [asked] = query.questions ?? [];
  if (asked === undefined) return undefined;
  const question = { name: asked.name.toLowerCase(), type: asked.type, over };
  fake.questions.push(question);
  const trouble = fake.trouble(question);
  if (trouble === 'silence') return undefined;
  if (trouble === 'garbage') return Buffer.concat([message.subarray(0, 2), Buffer.alloc(9, 0xff)]);
  const isCut = trouble === 'truncated' && over === 'udp';
  const answers = isCut ? [] : answersFor(fake.records, question);
  const isKnown =
    answers.length > 0 || Object.keys(fake.records).some((key) => nameOf(key) === question.name);
  const rcode =
    trouble === 'SERVFAIL' || trouble === 'REFUSED' ? rcodes[trouble] : isKnown ? 0 : rcodes.NXDOMAIN;
  return encode({
    type: 'response',
    id: query.id ?? 0,
    flags: AUTHORITATIVE_ANSWER | (isCut ? TRUNCATED_RESPONSE : 0) | rcode,
    questions: [asked],
    answers: rcode === 0 ? answers : [],
  });
}

function answersFor(records: FakeRecords, { name, type }: Pick<FakeQuestion, 'name' | 'type'>): Answer[] {
  const found = records[`${type} ${name}`];
  if (found !== undefined) {
    return found.map(
      (data) => ({ type, name, ttl: 60, data: Array.isArray(data) ? [...data] : data }) as Answer,
    );
  }
  const [target] = records[`CNAME ${name}`] ?? [];
  if (typeof target !== 'string') return [];
  const alias: Answer = { type: 'CNAME', name, ttl: 60, data: target };
  return [alias, ...answersFor(records, { name: target, type })];
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}
