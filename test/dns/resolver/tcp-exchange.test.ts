/** One request and one response, for any behavior of the server. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { suite, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { tcpExchange } from '../../../src/dns/resolver/tcp-exchange.ts';
import { fakeTcpDns, withLength } from '../../harness/dns/fake-dns.ts';
import { loopbackGuard } from '../../harness/loopback-guard.ts';
import { freePort } from '../../harness/processes/port.ts';
import { TestWorld } from '../../harness/test-world.ts';

const never = new AbortController().signal;
const message = Buffer.from('a question');
const answer = Buffer.from('an answer');

function addressOf(server: string) {
  const [host = '', port] = server.split(':');
  return { host, port: Number(port) };
}

test('the response is returned without its length prefix, and can be empty', async (t) => {
  const asked: string[] = [];
  const server = await fakeTcpDns(t, (received) => {
    asked.push(received.toString());
    return asked.length === 1 ? answer : Buffer.alloc(0);
  });
  const exchange = () =>
    tcpExchange({ world: new TestWorld(), guard: loopbackGuard }, addressOf(server), message, never);
  assert.deepEqual(await exchange(), answer);
  assert.deepEqual(await exchange(), Buffer.alloc(0));
  assert.deepEqual(asked, ['a question', 'a question']);
});

test('a response in single bytes is reassembled, and trailing bytes are ignored', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', async () => {
      socket.setNoDelay();
      for (const byte of withLength(answer)) {
        await new Promise((written) => socket.write(Buffer.of(byte), written));
      }
      socket.write('and more');
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => server[Symbol.asyncDispose]());
  const address = server.address();
  assert(typeof address === 'object' && address !== null);
  const target = { host: '127.0.0.1', port: address.port };
  assert.deepEqual(
    await tcpExchange({ world: new TestWorld(), guard: loopbackGuard }, target, message, never),
    answer,
  );
});

suite('an error is reported if', () => {
  for (let length = 0; length < answer.length + 2; length += 1) {
    test(`the connection is cut after ${length} bytes`, async (t) => {
      const server = await fakeTcpDns(t, () => ({ cutAfter: withLength(answer).subarray(0, length) }));
      await assert.rejects(
        tcpExchange({ world: new TestWorld(), guard: loopbackGuard }, addressOf(server), message, never),
        {
          name: 'DnsProviderError',
          message: `${server} closed the connection before it answered`,
        },
      );
    });
  }

  test('the connection is refused', async () => {
    const port = await freePort();
    const exchange = tcpExchange(
      { world: new TestWorld(), guard: loopbackGuard },
      { host: '127.0.0.1', port },
      message,
      never,
    );
    await assert.rejects(exchange, (error: Error) => {
      assert(error instanceof DnsProviderError);
      assert.match(
        error.message,
        new RegExp(`^cannot connect to 127\\.0\\.0\\.1:${port}: connection refused$`),
      );
      return true;
    });
  });

  test('the server does not respond for 15 seconds', async (t) => {
    const world = new TestWorld();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const server = await fakeTcpDns(t, () => {
      resolve();
      return undefined;
    });
    const exchange = tcpExchange({ world, guard: loopbackGuard }, addressOf(server), message, never);
    await asked;
    world.advance(15_000);
    await assert.rejects(exchange, {
      name: 'DnsProviderError',
      message: `${server} did not answer within 15 s`,
    });
  });

  test('the signal aborts before or during the request', async (t) => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const server = await fakeTcpDns(t, () => {
      resolve();
      return undefined;
    });
    const stop = new AbortController();
    const exchange = tcpExchange(
      { world: new TestWorld(), guard: loopbackGuard },
      addressOf(server),
      message,
      stop.signal,
    );
    await asked;
    stop.abort();
    const givenUp = { name: 'DnsProviderError', message: `the request to ${server} was canceled` };
    await assert.rejects(exchange, givenUp);
    await assert.rejects(
      tcpExchange({ world: new TestWorld(), guard: loopbackGuard }, addressOf(server), message, stop.signal),
      givenUp,
    );
  });
});
