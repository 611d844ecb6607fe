/** Messages as bytes: what we write, others can read, and what others send does no harm. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from 'dns-packet';
import fc from 'fast-check';
import {
  encodeRequest,
  encodeTxt,
  opcode,
  parseAnswer,
  recordClass,
  recordType,
} from '../../../src/dns/resolver/dns-message.ts';

const question = { name: 'Example.Test.', type: recordType.soa };

test('encoded queries parse with dns-packet', () => {
  const query = decode(encodeRequest({ id: 4711, opcode: opcode.query, question }));
  assert.equal(query.id, 4711);
  assert.deepEqual(query.questions, [{ name: 'example.test', type: 'SOA', class: 'IN' }]);
});

test('an update carries its records in the authority section', () => {
  const data = encodeTxt('one');
  const updates = [
    { name: 'a.example.test', type: recordType.txt, class: recordClass.in, ttl: 60, data },
    { name: 'a.example.test', type: recordType.txt, class: recordClass.none, ttl: 0, data },
  ];
  const bytes = encodeRequest({ id: 1, opcode: opcode.update, question, updates });
  const parsed = parseAnswer(bytes);
  assert.equal(parsed.opcode, opcode.update);
  assert.equal(parsed.isAnswer, false);
  assert.deepEqual(parsed.authorities, updates);
  const [added] = decode(bytes).authorities ?? [];
  assert.deepEqual(added?.type === 'TXT' && added.data, [Buffer.from('one')]);
});

test('encodeTxt splits text into strings of 255 bytes, and encodes empty text as one empty string', () => {
  assert.deepEqual(encodeTxt(''), Buffer.of(0));
  assert.deepEqual(encodeTxt('ab'), Buffer.from('\x02ab'));
  assert.deepEqual(
    [...encodeTxt('x'.repeat(256))].filter((byte) => byte !== 0x78),
    [255, 1],
  );
  assert.equal(encodeTxt('é')[0], 2);
});

const soa = {
  ...{ mname: 'ns.example.test', rname: 'hostmaster.example.test', serial: 1 },
  ...{ refresh: 1, retry: 1, expire: 1, minimum: 1 },
};
const answer = encode({
  type: 'response',
  id: 7,
  flags: 3,
  questions: [{ type: 'SOA', name: 'a.example.test' }],
  answers: [{ type: 'TXT', name: 'a.example.test', data: 'one' }],
  authorities: [{ type: 'SOA', name: 'Example.test', data: soa }],
  additionals: [{ type: 'A', name: 'ns.example.test', data: '192.0.2.1' }],
});

test('parseAnswer reads responses encoded with dns-packet', () => {
  const parsed = parseAnswer(answer);
  assert.equal(parsed.id, 7);
  assert.equal(parsed.isAnswer, true);
  assert.equal(parsed.rcode, 3);
  assert.deepEqual(parsed.answers[0]?.data, Buffer.from('\x03one'));
  assert.deepEqual(
    [parsed.authorities[0]?.name, parsed.authorities[0]?.type],
    ['example.test', recordType.soa],
  );
  assert.equal(parsed.additionals.length, 1);
  const last = answer.subarray(parsed.lastRecordAt);
  assert.equal(last.indexOf('ns'), 1);
});

test('lastRecordAt of a response without records is the end of the message', () => {
  const empty = encode({ type: 'response', id: 1 });
  assert.equal(parseAnswer(empty).lastRecordAt, empty.length);
});

test('a message that is truncated at any byte, or has trailing bytes, is rejected', () => {
  for (let length = 0; length < answer.length; length += 1) {
    assert.throws(() => parseAnswer(answer.subarray(0, length)), RangeError, `${length} bytes`);
  }
  assert.throws(() => parseAnswer(Buffer.concat([answer, Buffer.alloc(1)])), RangeError);
});

test('parseAnswer throws only RangeError for random bytes and for changed responses', () => {
  const refuse = (bytes: Uint8Array) => {
    try {
      parseAnswer(Buffer.from(bytes));
    } catch (error) {
      assert(error instanceof RangeError, String(error));
    }
  };
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), refuse));
  const changes = fc.array(fc.tuple(fc.nat(answer.length - 1), fc.nat(255)), { maxLength: 5 });
  fc.assert(
    fc.property(changes, (list) => {
      const bytes = Buffer.from(answer);
      for (const [at, value] of list) bytes[at] = value;
      refuse(bytes);
    }),
  );
});
