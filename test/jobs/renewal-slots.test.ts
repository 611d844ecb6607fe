/** For which renewals there is room beside those under way: no issuer and no DNS provider keeps others from theirs. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Lane } from '../../src/db/tables/renewals/renewal-lanes.ts';
import { admits, slots } from '../../src/jobs/renewal-slots.ts';

const acme = (issuer_id: number, dns_lane = 0): Lane => ({ issuer_id, dns_lane, is_acme: 1, is_by_hand: 0 });
const byHand = (issuer_id: number, dns_lane: number): Lane => ({
  ...acme(issuer_id, dns_lane),
  is_by_hand: 1,
});
const privateCa: Lane = { issuer_id: 1, dns_lane: 0, is_acme: 0, is_by_hand: 0 };
const times = (count: number, lane: Lane): Lane[] => Array.from({ length: count }, () => lane);

/** What is under way once each lane has got all that it is given. */
function filled(...lanes: readonly Lane[]): Lane[] {
  const underWay: Lane[] = [];
  for (let before = -1; before !== underWay.length; ) {
    before = underWay.length;
    for (const lane of lanes) if (admits(underWay, lane, lanes)) underWay.push(lane);
  }
  return underWay;
}

suite('slots of renewals', () => {
  test('one unresponsive DNS provider leaves its issuer slots for the others', () => {
    const stuck = filled(acme(2, 7));
    assert.equal(stuck.length, slots.perLane);
    assert(admits(stuck, acme(2, 8), [acme(2, 7), acme(2, 8)]));
    assert(admits(stuck, acme(2), [acme(2, 7), acme(2)]));
    assert(!admits(stuck, acme(2, 7), [acme(2, 7)]));
  });

  test('an unresponsive DNS provider takes no more than its own slots of all issuers together', () => {
    const stuck = filled(acme(2, 7), acme(3, 7), acme(4, 7), acme(5, 7));
    assert.equal(stuck.length, slots.perProvider);
    for (const issuer of [2, 3, 4, 5]) assert(admits(stuck, acme(issuer, 8), [acme(issuer, 8)]));
  });

  test('unresponsive issuers leave slots for the private CA', () => {
    const lanes = [2, 3, 4, 5, 6, 7].flatMap((issuer) => [acme(issuer, 7), acme(issuer, 8), acme(issuer)]);
    const stuck = filled(...lanes);
    assert.equal(stuck.length, slots.inAll - slots.forInstant);
    assert(admits(stuck, privateCa, [...lanes, privateCa]));
    const full = [...stuck, ...times(slots.forInstant, privateCa)];
    assert(!admits(full, privateCa, [privateCa]));
  });

  test('manual DNS renewals take no slots of other lanes, and one manual provider does not take all of theirs', () => {
    const waiting = filled(byHand(2, 5), byHand(3, 5));
    assert.equal(waiting.length, slots.perProvider);
    const all = filled(byHand(2, 5), byHand(2, 6), byHand(3, 7));
    assert.equal(all.length, slots.byHand);
    const lanes = [acme(2, 8), acme(3), privateCa];
    for (const lane of lanes) assert(admits(all, lane, lanes));
    assert.equal(
      filled(acme(2, 7), acme(2, 8), acme(2, 9), byHand(2, 5)).length,
      slots.perIssuer + slots.perProvider,
    );
  });

  test('an issuer gets at most ten slots, and an equal share if there are many issuers', () => {
    assert.equal(filled(acme(2, 7), acme(2, 8), acme(2, 9)).length, slots.perIssuer);
    for (const count of [4, 6, 9, 12, 36]) {
      const lanes = Array.from({ length: count }, (_, n) => [acme(n + 2, 7 + n), acme(n + 2)]).flat();
      const underWay = filled(...lanes);
      for (let issuer = 2; issuer < count + 2; issuer += 1) {
        const own = underWay.filter(({ issuer_id }) => issuer_id === issuer).length;
        assert.equal(own, Math.min(slots.perIssuer, Math.floor(36 / count)), `${count} issuers`);
      }
    }
  });
});
