/** ClientHellos as TLS clients really send them, whole, in pieces, and damaged at every byte. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import fc from 'fast-check';
import { offeredProtocols, readOpening } from '../../../src/http/tls/client-hello.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { helloOf } from '../../harness/http/tls-hello.ts';

/** The same message in records of at most `size` bytes. */
function fragmented(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const fragment = message.subarray(at, at + size);
    const head = Buffer.from([22, 3, 1, 0, 0]);
    head.writeUInt16BE(fragment.length, 3);
    records.push(head, fragment);
  }
  return Buffer.concat(records);
}

const offers: readonly (readonly [what: string, options: ConnectionOptions, protocols: readonly string[]])[] =
  [
    ['acme-tls/1 by TLS 1.3', { ALPNProtocols: ['acme-tls/1'] }, ['acme-tls/1']],
    ['acme-tls/1 by TLS 1.2', { ALPNProtocols: ['acme-tls/1'], maxVersion: 'TLSv1.2' }, ['acme-tls/1']],
    ['several protocols', { ALPNProtocols: ['h2', 'http/1.1'] }, ['h2', 'http/1.1']],
    ['no protocol', {}, []],
    ['neither protocol nor server name', { servername: '' }, []],
  ];

suite('a ClientHello', () => {
  for (const [what, options, protocols] of offers) {
    test(`with ${what} is read, in one record or several and with more bytes behind it`, async () => {
      const hello = await helloOf(options);
      assert.deepEqual(offeredProtocols(hello), protocols);
      for (const size of [hello.length >> 1, hello.length >> 2, (hello.length >> 3) + 1]) {
        assert.deepEqual(offeredProtocols(fragmented(hello, size)), protocols, `records of ${size}`);
      }
      assert.deepEqual(offeredProtocols(Buffer.concat([hello, Buffer.from('more')])), protocols);
    });
  }

  test('is incomplete at every shorter length', async () => {
    const hello = fragmented(await helloOf({ ALPNProtocols: ['acme-tls/1'] }), 600);
    for (let size = 0; size < hello.length; size += 1) {
      assert.equal(offeredProtocols(hello.subarray(0, size)), 'incomplete', `${size} bytes`);
    }
  });

  test('with any damaged byte is read without an exception', async () => {
    const hello = await helloOf({ ALPNProtocols: ['acme-tls/1'] });
    for (let at = 0; at < hello.length; at += 1) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        const damaged = Buffer.from(hello);
        damaged[at] = value;
        const offered = offeredProtocols(damaged);
        assert(
          offered === undefined || offered === 'incomplete' || Array.isArray(offered),
          `${at}: ${value}`,
        );
      }
    }
  });

  test('is not found in the first bytes of other protocols', () => {
    const others = [
      'GET / HTTP/1.1\r\n\r\n',
      'SSH-2.0-x\r\n',
      '\x15\x03\x01\x00\x02\x02\x28',
      '\x16\x03\x01\x00\x04\x02\0\0\0',
    ];
    for (const text of others) assert.equal(offeredProtocols(Buffer.from(text, 'latin1')), undefined, text);
  });

  test('in more records than any client sends is rejected', async () => {
    const hello = await helloOf({ ALPNProtocols: ['acme-tls/1'] });
    assert.equal(offeredProtocols(fragmented(hello, 20)), undefined);
  });
});

/** Both ends of a connection. */
async function connection(t: TestContext): Promise<{ near: Socket; far: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const far = connectTcp((server.address() as AddressInfo).port, '127.0.0.1');
  const [near] = (await once(server, 'connection')) as [Socket];
  t.after(() => {
    for (const socket of [near, far]) socket.destroy();
    server.close();
  });
  return { near, far };
}

suite('readOpening', () => {
  test('waits for the whole ClientHello in any pieces, and leaves its bytes in the socket', async (t) => {
    const hello = await helloOf({ ALPNProtocols: ['acme-tls/1'] });
    const { near, far } = await connection(t);
    far.setNoDelay(true);
    const opening = readOpening(near);
    for (const at of [0, 1, 4, 5, 9, 100]) {
      const next = [1, 4, 5, 9, 100, hello.length].find((end) => end > at);
      far.write(hello.subarray(at, next));
      // Each piece is seen alone, because the next is sent when it has arrived.
      if (next !== hello.length) await once(near, 'readable');
    }
    assert.deepEqual(await opening, { kind: 'hello', protocols: ['acme-tls/1'] });
    assert.deepEqual(near.read(), hello);
  });

  test('returns data that is not TLS', async (t) => {
    const { near, far } = await connection(t);
    far.write('GET / HTTP/1.1\r\n');
    assert.deepEqual(await readOpening(near), { kind: 'other', bytes: Buffer.from('GET / HTTP/1.1\r\n') });
  });

  test('reports the end of a connection, and treats an oversized ClientHello as other data', async (t) => {
    const cut = await connection(t);
    const seen = readOpening(cut.near);
    cut.far.end(Buffer.from([22, 3, 1]));
    assert.deepEqual(await seen, { kind: 'ended' });
    const broken = await connection(t);
    broken.near.on('error', () => {
      // A reset is one way to end.
    });
    const nothing = readOpening(broken.near);
    broken.far.resetAndDestroy();
    assert.deepEqual(await nothing, { kind: 'ended' });
    const endless = await connection(t);
    const refused = readOpening(endless.near);
    const record = Buffer.alloc(5 + 0xffff);
    Buffer.from([22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff]).copy(record);
    endless.far.write(record.subarray(0, 40_000));
    const opening = await refused;
    assert.equal(opening.kind, 'other');
  });
});

suite('a generated ClientHello', () => {
  const block = (size: number, content: Buffer) => {
    const length = Buffer.alloc(size);
    length.writeUIntBE(content.length, 0, size);
    return Buffer.concat([length, content]);
  };
  const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((all) => Buffer.from(all));
  const names = fc.array(
    fc.string({ unit: fc.constantFrom('a', 'h2', '/', '\xff'), minLength: 1, maxLength: 20 }),
    { maxLength: 4 },
  );
  const extension = fc.tuple(fc.integer({ min: 17, max: 0xffff }), bytes(40));

  test('yields the protocols that it offers, in records of any size', () => {
    const property = fc.property(
      ...([
        bytes(32),
        names,
        fc.array(extension, { maxLength: 4 }),
        fc.boolean(),
        fc.integer({ min: 40, max: 400 }),
      ] as const),
      (session, protocols, others, isLast, size) => {
        const alpn = Buffer.concat([
          Buffer.from([0, 16]),
          block(2, block(2, Buffer.concat(protocols.map((name) => block(1, Buffer.from(name, 'latin1')))))),
        ]);
        const more = others.map(([type, content]) =>
          Buffer.concat([Buffer.from([type >> 8, type & 255]), block(2, content)]),
        );
        const extensions = Buffer.concat(isLast ? [...more, alpn] : [alpn, ...more]);
        const body = [
          Buffer.from([3, 3]),
          Buffer.alloc(32, 7),
          block(1, session),
          block(2, Buffer.from([0x13, 1])),
          block(1, Buffer.alloc(1)),
          block(2, extensions),
        ];
        const message = Buffer.concat([Buffer.from([1]), block(3, Buffer.concat(body))]);
        if (message.length > size * 8) return;
        const hello = fragmented(Buffer.concat([Buffer.alloc(5), message]), size);
        assert.deepEqual(offeredProtocols(hello), protocols);
      },
    );
    fc.assert(property, fuzzRuns(500));
  });

  test('of arbitrary bytes is read without an exception', async () => {
    const real = await helloOf({ ALPNProtocols: ['acme-tls/1'] });
    const changed = fc
      .array(fc.tuple(fc.nat(real.length - 1), fc.nat(255)), { maxLength: 6 })
      .map((changes) => changes.reduce((all, [at, value]) => all.with(at, value), new Uint8Array(real)))
      .map((all) => Buffer.from(all));
    const property = fc.property(fc.oneof(bytes(300), changed), (any) => {
      const told = offeredProtocols(any);
      assert(told === undefined || told === 'incomplete' || Array.isArray(told));
    });
    fc.assert(property, fuzzRuns(1000));
  });
});
