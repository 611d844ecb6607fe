/**
 * Audit events by syslog: messages as RFC 5424 has them over each transport, and nothing lost where a collector goes
 * away.
 */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import type { AuditEventRow } from '../../src/db/audit/audit-events.ts';
import { auditSyslog, syslogMessage } from '../../src/jobs/audit-syslog.ts';
import type { SyslogTarget } from '../../src/jobs/syslog-connection.ts';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { TestWorld } from '../harness/test-world.ts';

const going = new AbortController().signal;

const event = (id: number, action = 'certificate.download'): AuditEventRow => ({
  ...{ id, at: Date.parse('2026-11-21T12:00:00.007Z'), actor: 'api-key:1:wéb', action },
  ...{ resource: 'certificate:www', detail: '{"version":1}', ip: '192.0.2.1', request_id: 'r-1' },
  link: Buffer.alloc(32, 1),
});

/** A collector that takes frames with octet counting; `received` are the messages. */
async function collector(t: TestContext, server: Server, place: object) {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    sockets.add(socket);
    let left = Buffer.alloc(0);
    socket
      .on('error', () => undefined)
      .on('data', (bytes: Buffer) => {
        left = Buffer.concat([left, bytes]);
        for (;;) {
          const blank = left.indexOf(0x20);
          const length = Number(left.subarray(0, Math.max(blank, 0)).toString());
          if (blank < 1 || left.length < blank + 1 + length) return;
          received.push(left.subarray(blank + 1, blank + 1 + length).toString());
          left = left.subarray(blank + 1 + length);
        }
      });
  };
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', accept);
  server.listen(place);
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    server,
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    /** Ends all connections, and waits until the other side has noticed. */
    cut: () => Promise.all([...sockets].map((socket) => once(socket.end(), 'close'))),
    /** How many connections it has accepted. */
    connections: () => sockets.size,
    /** The messages, once there are so many. */
    received: async (count: number) => {
      while (received.length < count) await nextTurn();
      return received;
    },
  };
}

function sending(t: TestContext, target: SyslogTarget) {
  const world = new TestWorld();
  const sink = auditSyslog(world, target, 'vault1');
  t.after(() => sink.close());
  return {
    world,
    sink,
    /** Delivers, and lets the connection live long enough after it. */
    deliver: async (...events: AuditEventRow[]) => {
      const delivered = sink.deliver(events, going);
      // One is the limit for all, the other what is waited after the last message.
      await world.sleeping(2);
      world.advance(1000);
      await delivered;
    },
  };
}

/** Where datagrams arrive, and when two of them are there. */
async function twoDatagrams(t: TestContext) {
  const udp = createSocket('udp4');
  const datagrams: string[] = [];
  const both = new Promise<void>((resolve) => {
    udp.on('message', (message) => {
      datagrams.push(message.toString());
      if (datagrams.length === 2) resolve();
    });
  });
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  t.after(() => udp.close());
  const { port } = udp.address();
  const target: SyslogTarget = { url: 'udp', transport: 'udp', host: '127.0.0.1', port };
  return { target, datagrams, both };
}

const tcp = (port: number): SyslogTarget => ({
  url: `tcp://127.0.0.1:${port}`,
  transport: 'tcp',
  host: '127.0.0.1',
  port,
});

const idsOf = (messages: readonly string[]) =>
  messages.map((message) => (JSON.parse(message.slice(message.indexOf('{'))) as { id: number }).id);

test('a message has facility, severity, time, host, program and action, and then the event', () => {
  assert.equal(
    syslogMessage(event(7), 'vault1'),
    '<109>1 2026-11-21T12:00:00.007Z vault1 vault - certificate.download - {"id":7,"at":"2026-11-21T12:00:00.007Z",' +
      '"actor":"api-key:1:wéb","action":"certificate.download","resource":"certificate:www","detail":{"version":1},' +
      `"ip":"192.0.2.1","request_id":"r-1","hash":"${'01'.repeat(32)}"}`,
  );
  assert.match(syslogMessage(event(7, 'access.refuse'), 'h'), /^<108>1 /);
  assert.match(syslogMessage(event(7, 'renewal.fail'), 'h'), /^<108>1 /);
});

test('TCP messages are framed with their length in octets and sent over one connection', async (t) => {
  const server = await collector(t, createServer(), { host: '127.0.0.1', port: 0 });
  const { deliver } = sending(t, tcp(server.port));
  await deliver(event(1), event(2));
  await deliver(event(3));
  assert.deepEqual(
    await server.received(3),
    [1, 2, 3].map((id) => syslogMessage(event(id), 'vault1')),
  );
  assert.equal(server.connections(), 1);
});

test('events in flight when the collector closes the connection are rejected and sent again', async (t) => {
  const server = await collector(t, createServer(), { host: '127.0.0.1', port: 0 });
  const { sink, world, deliver } = sending(t, tcp(server.port));
  const delivered = sink.deliver([event(1)], going);
  const refused = assert.rejects(delivered, /the syslog collector closed the connection/);
  await world.sleeping(2);
  await server.received(1);
  await server.cut();
  world.advance(1000);
  await refused;
  await deliver(event(1), event(2));
  assert.deepEqual(idsOf(await server.received(3)), [1, 1, 2]);
});

test('delivery is rejected if the collector refuses the connection or reads nothing for 30 s', async (t) => {
  const server = await collector(t, createServer(), { host: '127.0.0.1', port: 0 });
  const { port } = server;
  server.server.close();
  await once(server.server, 'close');
  await assert.rejects(sending(t, tcp(port)).sink.deliver([event(1)], going), { code: 'ECONNREFUSED' });

  const stuck = createServer((socket) => socket.pause().on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(stuck, 'listening');
  t.after(() => stuck.close());
  const { port: stuckPort } = stuck.address() as { port: number };
  const { sink, world } = sending(t, tcp(stuckPort));
  const large = { ...event(1), resource: 'x'.repeat(60_000) };
  const delivered = assert.rejects(
    sink.deliver(Array(500).fill(large), going),
    /the syslog collector accepted no messages for 30 seconds/,
  );
  await world.sleeping(1);
  world.advance(30_000);
  await delivered;
});

test(
  'TLS delivery succeeds only with a collector certificate from a trusted CA',
  needs('openssl'),
  async (t) => {
    const { leaf, fullchainPem, root } = makeChain(tempDir(t), { names: 'DNS:localhost' });
    const server = await collector(t, createTlsServer({ key: leaf.keyPem, cert: fullchainPem }), {
      ...{ host: '127.0.0.1', port: 0 },
    });
    const target: SyslogTarget = {
      ...tcp(server.port),
      transport: 'tls',
      host: 'localhost',
      port: server.port,
      ca: root.certificatePem,
    };
    const { deliver } = sending(t, target);
    await deliver(event(1));
    assert.deepEqual(idsOf(await server.received(1)), [1]);
    const { ca: _, ...untrusted } = target;
    await assert.rejects(sending(t, untrusted).sink.deliver([event(2)], going), {
      code: /SELF_SIGNED|UNABLE_TO/,
    });
    assert.deepEqual(idsOf(await server.received(1)), [1]);
  },
);

test('messages are sent to a Unix socket and, over UDP, one per datagram', async (t) => {
  const path = join(tempDir(t), 'syslog');
  const server = await collector(t, createServer(), { path });
  await sending(t, { url: `unix:${path}`, transport: 'unix', path }).deliver(event(1));
  assert.deepEqual(idsOf(await server.received(1)), [1]);

  const { target, datagrams, both } = await twoDatagrams(t);
  await sending(t, target).sink.deliver([event(1), event(2)], going);
  await both;
  assert.deepEqual(
    datagrams,
    [1, 2].map((id) => syslogMessage(event(id), 'vault1')),
  );
});

test('a UDP event longer than a datagram is sent without its details and does not block the next one', async (t) => {
  const { target, datagrams, both } = await twoDatagrams(t);
  const detail = JSON.stringify({ certificates: Array(1000).fill('x'.repeat(70)) });
  await sending(t, target).sink.deliver([{ ...event(1), detail }, event(2)], going);
  await both;
  assert.deepEqual(idsOf(datagrams), [1, 2]);
  assert.match(datagrams[0] ?? '', /"detail":\{"omitted":"longer than a datagram"\},.*"hash":"(01)+"\}$/);
});
