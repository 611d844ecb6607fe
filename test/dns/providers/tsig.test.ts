/** Signatures: ours are those that nsupdate makes, and of others' only the right ones are taken. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import {
  sign,
  type TsigAlgorithm,
  type TsigKey,
  tsigAlgorithms,
  verify,
} from '../../../src/dns/providers/tsig.ts';
import { encodeRequest, opcode, parseAnswer, recordType } from '../../../src/dns/resolver/dns-message.ts';
import { type AnswerSignature, plainAnswer, signedAnswer } from './tsig-answer.ts';

const bytes = Buffer.from('a secret of thirty-two bytes !!!');
const keyOf = (algorithm: TsigAlgorithm = 'hmac-sha256', name = 'Acme-Key.'): TsigKey => ({
  ...{ name, algorithm, secret: new Secret(bytes) },
});

/** Updates that nsupdate 9.18 sent with this secret and the key Acme-Key, whose clock said 2026-11-21T13:32:36Z. */
const fromNsupdate: Readonly<Partial<Record<TsigAlgorithm, string>>> = {
  'hmac-sha256':
    'd93228000001000000020001076578616d706c65047465737400000600010f5f61636d652d6368616c6c656e676503777777076578616d706c65047465737400001000010000003c0004036f6e65c01e001000fe0000000000040374776f0861636d652d6b65790000fa00ff00000000003d0b686d61632d7368613235360000006b019d74012c00205853904645f2917b2d2f1245a0896d4ac8ac9d3b3d815f5217703c7ef6d1c0b3d93200000000',
  'hmac-md5':
    '54f028000001000000020001076578616d706c65047465737400000600010f5f61636d652d6368616c6c656e676503777777076578616d706c65047465737400001000010000003c0004036f6e65c01e001000fe0000000000040374776f0861636d652d6b65790000fa00ff00000000003a08686d61632d6d6435077369672d616c670372656703696e740000006b019d74012c0010750be2c013b908c14cc640b12a2f978454f000000000',
};

for (const [algorithm, hex] of Object.entries(fromNsupdate) as [TsigAlgorithm, string][]) {
  test(`a request is signed as nsupdate signs it, with ${algorithm}`, () => {
    const theirs = Buffer.from(hex, 'hex');
    const unsigned = Buffer.from(theirs.subarray(0, parseAnswer(theirs).lastRecordAt));
    unsigned.writeUInt16BE(0, 10);
    const { message } = sign(unsigned, keyOf(algorithm), 0x6b019d74 * 1000 + 999);
    assert.equal(message.toString('hex'), hex);
  });
}

test('sign does not modify the request', () => {
  const request = encodeRequest({
    id: 1,
    opcode: opcode.query,
    question: { name: 'a', type: recordType.soa },
  });
  const before = Buffer.from(request);
  sign(request, keyOf(), 0);
  assert.deepEqual(request, before);
});

suite('the signature of a response', () => {
  const now = Date.parse('2026-11-21T12:00:00Z');
  const time = now / 1000;
  const question = { name: 'example.test', type: recordType.soa };
  const request = encodeRequest({ id: 77, opcode: opcode.update, question });
  const judge = (
    how: Partial<AnswerSignature> & { key?: TsigKey; name?: string; algorithm?: string; secret?: Buffer },
    change = (answer: Buffer) => answer,
  ) => {
    const key = how.key ?? keyOf();
    const { mac } = sign(request, key, now);
    const wireName = key.algorithm === 'hmac-md5' ? 'hmac-md5.sig-alg.reg.int' : key.algorithm;
    const theirKey = {
      name: how.name ?? 'acme-key',
      algorithm: how.algorithm ?? wireName,
      secret: how.secret ?? bytes,
    };
    const answer = change(signedAnswer(plainAnswer(request, 0), mac, theirKey, { time, ...how }));
    return verify(answer, parseAnswer(answer), key, mac, now);
  };

  for (const algorithm of tsigAlgorithms) {
    test(`is good with ${algorithm}`, () =>
      assert.deepEqual(judge({ key: keyOf(algorithm) }), { kind: 'good' }));
  }

  test('is good with an ID changed by a forwarder, and with a time five minutes apart', () => {
    const changed = (answer: Buffer) => {
      answer.writeUInt16BE(78, 0);
      return answer;
    };
    assert.deepEqual(judge({ originalId: 77 }, changed), { kind: 'good' });
    assert.deepEqual(judge({ time: time - 300 }), { kind: 'good' });
    assert.deepEqual(judge({ time: time + 300 }), { kind: 'good' });
  });

  test('is stale when its time is further apart than its fudge', () => {
    assert.deepEqual(judge({ time: time - 301 }), { kind: 'stale', serverTime: now - 301_000 });
    assert.deepEqual(judge({ time: time + 11, fudge: 10 }), { kind: 'stale', serverTime: now + 11_000 });
  });

  test('is missing if the response has no TSIG record', () => {
    const answer = plainAnswer(request, 0);
    assert.deepEqual(verify(answer, parseAnswer(answer), keyOf(), Buffer.alloc(32), now), {
      kind: 'missing',
    });
  });

  test('is forged with another secret, name, algorithm, or a shorter or empty MAC', () => {
    for (const how of [
      { secret: Buffer.from('guessed') },
      { name: 'other-key' },
      { algorithm: 'hmac-sha512' },
      { mac: Buffer.alloc(0) },
      { mac: Buffer.alloc(16) },
      { mac: Buffer.alloc(32) },
    ]) {
      assert.deepEqual(judge(how), { kind: 'forged' }, JSON.stringify(how));
    }
  });

  test('is not good if any covered bit of the response is changed', () => {
    const { mac } = sign(request, keyOf(), now);
    const key = { name: 'acme-key', algorithm: 'hmac-sha256', secret: bytes };
    const right = signedAnswer(plainAnswer(request, 0), mac, key, { time });
    for (let bit = 0; bit < right.length * 8; bit += 1) {
      const answer = Buffer.from(right);
      answer[bit >> 3] = (answer[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      let verdict: string;
      try {
        verdict = verify(answer, parseAnswer(answer), keyOf(), mac, now).kind;
      } catch {
        // No message any more, which is as good.
        verdict = 'unreadable';
      }
      // Not covered: the id itself (the original one is), capitals of names, and class and TTL of the TSIG record.
      const byte = bit >> 3;
      const at = parseAnswer(right).lastRecordAt;
      const isName = (bit & 7) === 5 && (answer[byte] ?? 0) > 0x40 && (answer[byte] ?? 0) < 0x7b;
      const isCovered = byte > 1 && !(byte >= at + 12 && byte < at + 18) && !(isName && byte > at);
      assert(!isCovered || verdict !== 'good', `bit ${bit} of ${right.length * 8}`);
    }
  });

  test('with a TSIG error is refused with the error code, and with the server time for BADTIME', () => {
    assert.deepEqual(judge({ error: 16, mac: Buffer.alloc(0) }), { kind: 'refused', error: 16 });
    assert.deepEqual(judge({ error: 17, mac: Buffer.alloc(0) }), { kind: 'refused', error: 17 });
    assert.deepEqual(judge({ error: 22 }), { kind: 'refused', error: 22 });
    const other = Buffer.alloc(6);
    other.writeUIntBE(time + 3600, 0, 6);
    const badTime = { kind: 'refused', error: 18, serverTime: now + 3_600_000 };
    assert.deepEqual(judge({ error: 18, other }), badTime);
    assert.deepEqual(judge({ error: 18 }), { ...badTime, serverTime: now });
    assert.deepEqual(
      judge({ error: 18, other, mac: Buffer.alloc(0) }),
      { kind: 'forged' },
      'BADTIME is signed',
    );
  });

  test('with truncated TSIG data is forged', () => {
    const { mac } = sign(request, keyOf(), now);
    const key = { name: 'acme-key', algorithm: 'hmac-sha256', secret: bytes };
    const right = signedAnswer(plainAnswer(request, 0), mac, key, { time });
    const { lastRecordAt, additionals } = parseAnswer(right);
    const size = additionals[0]?.data.length ?? 0;
    for (let length = 0; length < size; length += 1) {
      const answer = Buffer.from(right.subarray(0, right.length - size + length));
      answer.writeUInt16BE(length, lastRecordAt + 18);
      assert.deepEqual(
        verify(answer, parseAnswer(answer), keyOf(), mac, now),
        { kind: 'forged' },
        `${length}`,
      );
    }
  });
});
