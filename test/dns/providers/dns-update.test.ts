/** What an update asks, which zone an answer tells, and how refusals read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  additionOf,
  isAnswerTo,
  refusal,
  removalOf,
  signatureRefusal,
  zoneIn,
} from '../../../src/dns/providers/dns-update.ts';
import {
  type DnsAnswer,
  type ResourceRecord,
  recordClass,
  recordType,
} from '../../../src/dns/resolver/dns-message.ts';

const record = { name: '_acme-challenge.example.test', value: 'one' };

test('a record is added by name, value and lifetime, and removed by name and value', () => {
  const data = Buffer.from('\x03one');
  const { name } = record;
  assert.deepEqual(additionOf(record, 60), { name, type: 16, class: 1, ttl: 60, data });
  assert.deepEqual(removalOf(record), { name, type: 16, class: 254, ttl: 0, data });
});

const answerOf = (answers: readonly ResourceRecord[], authorities: readonly ResourceRecord[]): DnsAnswer => ({
  ...{ id: 1, isAnswer: true, opcode: 0, rcode: 0, lastRecordAt: 0 },
  ...{ answers, authorities, additionals: [] },
});
const soaOf = (name: string): ResourceRecord => ({
  ...{ name, type: recordType.soa, class: recordClass.in, ttl: 0, data: Buffer.alloc(0) },
});

test('zoneIn returns the owner of the SOA record in the answer or authority section', () => {
  const name = 'a.example.test';
  assert.equal(zoneIn(answerOf([soaOf(name)], []), name), name);
  assert.equal(zoneIn(answerOf([], [soaOf('example.test')]), name), 'example.test');
  assert.equal(zoneIn(answerOf([], [soaOf('')]), name), undefined, 'the root');
  assert.equal(zoneIn(answerOf([], [{ ...soaOf('example.test'), type: 2 }]), name), undefined, 'a referral');
  assert.equal(zoneIn(answerOf([soaOf('cdn.test')], []), name), undefined, "an alias's target");
});

test('isAnswerTo matches a response to its request by ID and opcode', () => {
  const answer = { ...answerOf([], []), opcode: 5 };
  assert.equal(isAnswerTo(answer, 1, 5), true);
  assert.equal(isAnswerTo(answer, 2, 5), false);
  assert.equal(isAnswerTo(answer, 1, 0), false);
  assert.equal(isAnswerTo({ ...answer, isAnswer: false }, 1, 5), false);
});

test('refusal describes response codes with a hint for the fix', () => {
  assert.match(
    refusal(5),
    /^answered REFUSED: the key is not permitted to change TXT records at this name; /,
  );
  assert.match(refusal(9), /^answered NOTAUTH: not the primary server of this zone/);
  assert.match(refusal(10), /^answered NOTZONE: the name is not in the zone/);
  assert.match(refusal(4), /^answered NOTIMP: dynamic updates are not supported/);
  assert.equal(refusal(15), 'answered code 15: see its log');
});

test('signatureRefusal describes each signature error with a hint for the fix', () => {
  const now = Date.parse('2026-11-21T12:00:00Z');
  const words = (verdict: Parameters<typeof signatureRefusal>[0]) => signatureRefusal(verdict, now);
  assert.match(words({ kind: 'missing' }), /^answered without a signature/);
  assert.match(words({ kind: 'forged' }), /by another key; check secret and algorithm/);
  assert.match(words({ kind: 'refused', error: 16 }), /^answered BADSIG: .*check secret/);
  assert.match(words({ kind: 'refused', error: 17 }), /^answered BADKEY: .*check key_name/);
  assert.match(words({ kind: 'refused', error: 22 }), /^answered BADTRUNC/);
  assert.match(words({ kind: 'refused', error: 99 }), /^answered TSIG error 99/);
  assert.equal(
    words({ kind: 'refused', error: 18, serverTime: now + 3_600_000 }),
    "answered BADTIME: the clock of the server is 3600 s ahead of the vault's; synchronize both with NTP",
  );
  assert.equal(words({ kind: 'refused', error: 18 }), 'answered BADTIME: the clocks differ');
  assert.match(words({ kind: 'stale', serverTime: now - 400_000 }), /400 s behind the vault's/);
});
