/** Dynamic updates against a scripted server: what is sent, what is believed, and what people are told. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { suite, test } from 'node:test';
import { encode } from 'dns-packet';
import { silentLog } from '../../../src/base/log.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { dnsProviderTypes, readProviderConfig } from '../../../src/dns/providers/provider-types.ts';
import { rfc2136 } from '../../../src/dns/providers/rfc2136.ts';
import { opcode, parseAnswer } from '../../../src/dns/resolver/dns-message.ts';
import { fakeTcpDns, type TcpReply, withLength } from '../../harness/dns/fake-dns.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';
import { TestWorld } from '../../harness/test-world.ts';
import { type AnswerSignature, macOf, plainAnswer, signedAnswer } from './tsig-answer.ts';

const never = new AbortController().signal;
const secret = Buffer.from('a secret of thirty-two bytes !!!');
const key = { name: 'acme-key', algorithm: 'hmac-sha256', secret };
const record = {
  ...{ name: '_acme-challenge.www.example.test', value: 'one' },
  ...{ zone: 'example.test', domain: 'www.example.test' },
};
const settings = {
  key_name: 'Acme-Key.',
  algorithm: 'hmac-sha256',
  secret: secret.toString('base64'),
  ttl: 60,
} as const;

type Script = (request: Buffer, kind: 'query' | 'update') => TcpReply;

async function start(t: TestContext, script: Script, more: object = settings) {
  const world = new TestWorld();
  const time = Math.floor(world.now() / 1000);
  const requests: Buffer[] = [];
  const server = await fakeTcpDns(t, (request) => {
    requests.push(request);
    return script(request, parseAnswer(request).opcode === opcode.update ? 'update' : 'query');
  });
  const context = { ...fakeContext(), world, log: silentLog };
  const type = dnsProviderTypes.get('rfc2136');
  assert(type !== undefined);
  const config = await readProviderConfig(type, JSON.stringify({ server, ...more }));
  return { server, requests, world, time, provider: type.create(config, context) };
}

/** Answers signed as they should be, with the time of a TestWorld. */
function signedWith(request: Buffer, answer: Buffer, how: Partial<AnswerSignature> = {}): Buffer {
  const time = Math.floor(new TestWorld().now() / 1000);
  return signedAnswer(answer, macOf(request, 32), key, { time, ...how });
}

/** "There is none, but the zone is …", as a server says it. */
function soaAnswer(request: Buffer, zone: string): Buffer {
  const data = {
    ...{ mname: `ns.${zone}`, rname: `hostmaster.${zone}`, serial: 1 },
    ...{ refresh: 1, retry: 1, expire: 1, minimum: 1 },
  };
  const id = request.readUInt16BE(0);
  return Buffer.from(
    encode({ type: 'response', id, flags: 3, authorities: [{ type: 'SOA', name: zone, data }] }),
  );
}

const obliging: Script = (request, kind) =>
  signedWith(request, kind === 'query' ? soaAnswer(request, 'example.test') : plainAnswer(request, 0));

suite('requests', () => {
  test('each change sends a signed SOA query for the zone and a signed update of the single record', async (t) => {
    const { provider, requests } = await start(t, obliging);
    await provider.present(record, never);
    await provider.remove(record, never);
    const [question, addition, , removal] = requests.map(parseAnswer);
    assert.equal(requests.length, 4);
    assert.equal(question?.opcode, opcode.query);
    const { name } = record;
    const data = Buffer.from('\x03one');
    assert.deepEqual(addition?.authorities, [{ name, type: 16, class: 1, ttl: 60, data }]);
    assert.deepEqual(removal?.authorities, [{ name, type: 16, class: 254, ttl: 0, data }]);
    for (const request of requests) assert.equal(parseAnswer(request).additionals.at(-1)?.type, 250);
    assert.equal(requests[1]?.toString('latin1', 12, 26), '\x07example\x04test\x00', 'the zone section');
    assert(!requests.some((request) => request.includes(secret)));
  });

  test('a batch sends one update for each zone, with all its records', async (t) => {
    const { provider, requests } = await start(t, (request, kind) => {
      const zone = request.includes('other') ? 'other.test' : 'example.test';
      return signedWith(request, kind === 'query' ? soaAnswer(request, zone) : plainAnswer(request, 0));
    });
    const elsewhere = { ...record, name: '_acme-challenge.other.test' };
    await provider.batch?.present([record, elsewhere, { ...record, value: 'two' }], never);
    const updates = requests.map(parseAnswer).filter((request) => request.opcode === opcode.update);
    assert.deepEqual(
      updates.map(({ authorities }) => authorities.map(({ name, data }) => [name, data.toString()])),
      [
        [
          [record.name, '\x03one'],
          [record.name, '\x03two'],
        ],
        [[elsewhere.name, '\x03one']],
      ],
    );
  });

  test('a configured zone is not queried, and the configured TTL is sent', async (t) => {
    const { provider, requests } = await start(t, obliging, { ...settings, zone: 'Test.', ttl: 5 });
    await provider.present(record, never);
    assert.equal(requests.length, 1);
    assert.equal(requests[0]?.toString('latin1', 12, 18), '\x04test\x00');
    assert.equal(parseAnswer(requests[0] ?? Buffer.alloc(0)).authorities[0]?.ttl, 5);
  });

  test('parent names are queried if a response has no SOA, and the zone of the record is used after REFUSED', async (t) => {
    const asked: number[] = [];
    const { provider, requests } = await start(t, (request, kind) => {
      asked.push(request.length);
      const isApex = request.toString('latin1', 12, 20) === '\x07example';
      if (kind === 'query' && isApex) return signedWith(request, soaAnswer(request, 'example.test'));
      return signedWith(request, plainAnswer(request, 0));
    });
    await provider.present(record, never);
    assert.equal(requests.length, 4, 'the name, www.example.test, example.test, and the update');
    const refused = await start(t, (request, kind) =>
      signedWith(request, plainAnswer(request, kind === 'query' ? 5 : 0)),
    );
    await refused.provider.present(record, never);
    assert.equal(refused.requests.length, 2);
    assert.equal(refused.requests[1]?.toString('latin1', 13, 20), 'example');
  });

  test('requests are unsigned and unsigned responses are accepted without a key', async (t) => {
    const script: Script = (request, kind) =>
      kind === 'query' ? soaAnswer(request, 'example.test') : plainAnswer(request, 0);
    const { provider, requests } = await start(t, script, { unsigned: true });
    await provider.present(record, never);
    for (const request of requests) assert.equal(parseAnswer(request).additionals.length, 0);
  });
});

suite('rfc2136 reports a clear error for', () => {
  const update =
    (answer: (request: Buffer) => TcpReply): Script =>
    (request, kind) =>
      kind === 'query' ? obliging(request, kind) : answer(request);
  const serverTime = Buffer.alloc(6);
  serverTime.writeUIntBE(new TestWorld().now() / 1000 + 900, 0, 6);
  const cases: Readonly<Record<string, readonly [Script, RegExp]>> = {
    REFUSED: [
      update((request) => signedWith(request, plainAnswer(request, 5))),
      /failed to change _acme-challenge\.www\.example\.test in the zone example\.test: it answered REFUSED: the key is not permitted/,
    ],
    NOTZONE: [update((request) => signedWith(request, plainAnswer(request, 10))), /answered NOTZONE/],
    'NOTAUTH, signed': [
      update((request) => signedWith(request, plainAnswer(request, 9))),
      /answered NOTAUTH/,
    ],
    SERVFAIL: [update((request) => signedWith(request, plainAnswer(request, 2))), /answered SERVFAIL/],
    'REFUSED without a signature': [(request) => plainAnswer(request, 5), /^[\d.:]+ answered REFUSED: /],
    BADKEY: [
      (request) => signedWith(request, plainAnswer(request, 9), { error: 17, mac: Buffer.alloc(0) }),
      /answered BADKEY: unknown TSIG key name or algorithm/,
    ],
    BADSIG: [
      (request) => signedWith(request, plainAnswer(request, 9), { error: 16, mac: Buffer.alloc(0) }),
      /answered BADSIG: wrong TSIG secret/,
    ],
    BADTIME: [
      (request) => signedWith(request, plainAnswer(request, 9), { error: 18, other: serverTime }),
      /answered BADTIME: the clock of the server is 900 s ahead of the vault's/,
    ],
    'success without a signature': [
      update((request) => plainAnswer(request, 0)),
      /answered without a signature/,
    ],
    'success with a wrong signature': [
      update((request) => signedWith(request, plainAnswer(request, 0), { mac: Buffer.alloc(32, 1) })),
      /answered with a signature by another key/,
    ],
    'success with a signature from an hour ago': [
      update((request) =>
        signedWith(request, plainAnswer(request, 0), { time: new TestWorld().now() / 1000 - 3600 }),
      ),
      /answered with a signature from another time: the clock of the server is 3600 s behind the vault's/,
    ],
    'a response with another ID': [
      (request) => {
        const answer = plainAnswer(request, 0);
        answer.writeUInt16BE(request.readUInt16BE(0) ^ 1, 0);
        return signedWith(request, answer);
      },
      /sent an answer that does not match the request/,
    ],
    'the request sent back as the response': [
      (request) => request,
      /sent an answer that does not match the request/,
    ],
    'a response with another opcode': [
      update((request) => {
        const answer = plainAnswer(request, 0);
        answer.writeUInt16BE(0x8000, 2);
        return signedWith(request, answer);
      }),
      /sent an answer that does not match the request/,
    ],
    'text that is not DNS': [
      () => Buffer.from('HTTP/1.1 400 Bad Request'),
      /sent an answer that is not a DNS message/,
    ],
    'an empty response': [() => Buffer.alloc(0), /sent an answer that is not a DNS message/],
    'a cut connection': [() => ({ cutAfter: Buffer.of(0) }), /closed the connection before it answered/],
  };
  for (const [what, [script, words]] of Object.entries(cases)) {
    test(what, async (t) => {
      const { provider } = await start(t, script);
      for (const act of [provider.present, provider.remove]) {
        await assert.rejects(act(record, never), (error: Error) => {
          assert(error instanceof DnsProviderError, String(error));
          assert.match(error.message, words);
          assert(!error.message.includes(settings.secret));
          return true;
        });
      }
    });
  }

  test('a response that is cut at any byte', async (t) => {
    let length = 0;
    let whole = Number.POSITIVE_INFINITY;
    const { provider } = await start(
      t,
      (request) => {
        const bytes = withLength(signedWith(request, plainAnswer(request, 0)));
        whole = bytes.length;
        return { cutAfter: bytes.subarray(0, length) };
      },
      { ...settings, zone: 'example.test' },
    );
    for (; length < whole; length += 1) {
      await assert.rejects(provider.present(record, never), /closed the connection/, `after ${length} bytes`);
    }
    await provider.present(record, never);
  });

  test('an invalid name, and sends no request', async (t) => {
    const { provider, requests } = await start(t, obliging);
    await assert.rejects(provider.present({ ...record, name: 'a..b' }, never), DnsProviderError);
    assert.equal(requests.length, 0);
  });
});

suite('settings', () => {
  const good = { server: 'ns1.example.test', key_name: 'k', secret: 'c2VjcmV0' };
  const issues = (config: object) =>
    rfc2136.config
      .safeParse(config)
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];

  test('have defaults', () => {
    assert.deepEqual(rfc2136.config.parse(good), { ...good, algorithm: 'hmac-sha256', ttl: 60 });
  });

  test('a server is a host or an address, with or without a port', () => {
    const servers = [
      'ns1:5353',
      '192.0.2.1',
      '192.0.2.1:53',
      '2001:db8::1',
      '[2001:db8::1]',
      '[::1]:5353',
      'NS-1.a.b:1',
    ];
    for (const server of servers) assert.deepEqual(issues({ ...good, server }), [], server);
    for (const server of ['', 'a:0', 'a:65536', 'a:b', 'https://a', 'a b', '[a]:1', 'a:1:2', '[::1', '-a']) {
      assert.match(issues({ ...good, server })[0] ?? '', /^server: must be HOST or HOST:PORT/, server);
    }
  });

  test('key_name and secret are required together unless unsigned is set', () => {
    const { server, key_name, secret: text } = good;
    assert.deepEqual(issues({ server, unsigned: true }), []);
    assert.match(issues({ server }).join(), /key_name: is missing/);
    assert.match(issues({ server, key_name }).join(), /secret: must be set together with key_name/);
    assert.match(issues({ server, secret: text }).join(), /key_name: is missing/);
    assert.match(issues({ ...good, unsigned: true }).join(), /unsigned: cannot be combined with key_name/);
  });

  test('an invalid secret, algorithm or ttl is rejected', () => {
    for (const text of ['', 'no base64!', 'c2VjcmV', 'c2Vj cmV0']) {
      assert.match(issues({ ...good, secret: text }).join(), /secret: must be the base64 text/, text);
    }
    assert.match(issues({ ...good, algorithm: 'sha256' }).join(), /^algorithm: .*hmac-sha256/);
    for (const ttl of [-1, 1.5, 86_401, '60']) assert.match(issues({ ...good, ttl }).join(), /^ttl: /);
  });
});
