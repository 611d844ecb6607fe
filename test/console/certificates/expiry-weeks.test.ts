/** The weeks of the histogram, their texts, and the filter that each sets. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Group } from '../../../assets/console/certificates/certificate-health.ts';
import {
  axisTop,
  type Expiry,
  expiryWeeks,
  weekIn,
  weekSummary,
  weekTest,
  weekText,
} from '../../../assets/console/certificates/expiry-weeks.ts';

const day = 86_400_000;
/** A Wednesday. */
const now = new Date(2026, 11, 9, 15).getTime();
const at = (left: number, group: Group = 'healthy'): Expiry => ({ to: now + left * day, group });
const totals = (expiries: readonly Expiry[], most = 53) =>
  expiryWeeks(expiries, now, most).map(({ id, total }) => [id, total]);

describe('the weeks of the histogram', () => {
  test('begin with this one on Monday, and include weeks without expiries', () => {
    assert.deepEqual(totals([at(0.1), at(4.3), at(4.4), at(37)]), [
      ['2026-12-07', 2],
      ['2026-12-14', 1],
      ['2026-12-21', 0],
      ['2026-12-28', 0],
      ['2027-01-04', 0],
      ['2027-01-11', 1],
    ]);
  });

  test('have expired certificates in a bucket at the left, also those of this week', () => {
    const [first, second] = totals([at(-400), at(-1), at(0), at(1)]);
    assert.deepEqual(
      [first, second],
      [
        ['expired', 3],
        ['2026-12-07', 1],
      ],
    );
  });

  test('have certificates beyond the last week in a bucket at the right', () => {
    const found = totals([at(1), at(8), at(15), at(22), at(29)], 3);
    assert.deepEqual(found.slice(-2), [
      ['2026-12-21', 1],
      ['2026-12-28..', 2],
    ]);
    assert.equal(found.length, 4);
  });

  test('are not stretched by a few certificates of many years', () => {
    const usual = Array.from({ length: 99 }, (_, index) => at(1 + (index % 80)));
    const found = totals([...usual, at(3650)]);
    assert.equal(found.length, 13);
    assert.deepEqual(found.at(-1), ['2027-03-01..', 1]);
  });

  test('include the last expiry if it is a few weeks after the others', () => {
    const usual = Array.from({ length: 99 }, (_, index) => at(1 + (index % 80)));
    assert.equal(totals([...usual, at(100)]).at(-1)?.[0], '2027-03-15');
  });

  test('are at least six and at most as many as wanted', () => {
    assert.equal(totals([]).length, 6);
    assert.equal(totals([at(-1)]).length, 7);
    assert.equal(totals([at(300), at(310)], 10).length, 11);
    assert.equal(totals([at(1)], 1).length, 1);
  });

  test('count each certificate once, by group, those that need attention first', () => {
    const [week] = expiryWeeks([at(1), at(2, 'failing'), at(2), at(3, 'expired')], now, 53);
    assert.deepEqual(week?.counts, [
      { group: 'expired', count: 1 },
      { group: 'failing', count: 1 },
      { group: 'healthy', count: 2 },
    ]);
    const many = Array.from({ length: 5000 }, (_, index) => at((index % 900) - 40));
    assert.equal(
      expiryWeeks(many, now, 30).reduce((sum, { total }) => sum + total, 0),
      5000,
    );
  });
});

test('the filter of a week matches the certificates that its bar counts', () => {
  const many = Array.from({ length: 2000 }, (_, index) => at((index - 300) / 3));
  for (const { id, total } of expiryWeeks(many, now, 20)) {
    assert.equal(weekIn(id), id);
    const isIn = weekTest(id, now);
    assert.equal(many.filter(({ to }) => isIn(to)).length, total, id);
  }
});

test('the filter of a week that is over matches all that expired in it', () => {
  const isIn = weekTest('2026-11-30', now);
  assert.deepEqual(
    [-10, -9, -3, -2].map((left) => isIn(now + left * day)),
    [false, true, true, false],
  );
  assert.equal(weekTest('2026-11-30..', now)(now - 9 * day), false);
  assert.equal(weekTest('expired', now)(Number.NaN), false);
});

test('other texts in the address are no week', () => {
  for (const text of ['', 'expired..', '2026-12', '2026-13-45', '2026-12-07.', ' 2026-12-07', 'constructor'])
    assert.equal(weekIn(text), '', text);
});

test('the name of a week has its certificates, and how many of them need attention', () => {
  const name = (...expiries: readonly Expiry[]) =>
    expiryWeeks(expiries, now, 53)
      .filter(({ total }) => total > 0)
      .map((week) => weekSummary(week, now));
  const sevenDecember = weekText('2026-12-07', now);
  assert.match(sevenDecember, /^Week of /);
  assert.deepEqual(name(at(1)), [`${sevenDecember}: 1 certificate`]);
  assert.deepEqual(name(at(1), at(2, 'failing'), at(2, 'expiring'), at(3, 'inactive'), at(3, 'expired')), [
    `${sevenDecember}: 5 certificates, 1 not valid yet, 1 failing, 1 expiring soon, 1 disabled`,
  ]);
  assert.deepEqual(name(at(-1, 'expired'), at(-2, 'expired'), at(-2, 'inactive')), [
    'Expired: 3 certificates, 1 disabled',
  ]);
  assert.match(weekText('2027-03-01..', now), /^Later, from .*2027.* on$/);
});

test('the axis ends at a round number at or above the largest count', () => {
  const tops = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 41, 99, 596, 1000, 1001].map(axisTop);
  assert.deepEqual(tops, [1, 1, 2, 4, 4, 6, 8, 10, 10, 20, 60, 100, 600, 1000, 2000]);
});
