/** Up to which moment renewals are due while a clock jumps: forward, back, and at the start of a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { ClockHold, type ClockRecord } from '../../../src/domain/schedule/clock-hold.ts';

const start = Date.UTC(2026, 10, 26);
const year = 365 * day;

type Look = readonly [now: number, dueUntil: number];

const steady: ClockRecord = { since: start - 30 * day, seen: start };

const never = Number.NEGATIVE_INFINITY;

for (const [title, record, looks] of [
  [
    'a steady clock is trusted, also after a suspension of two days',
    undefined,
    [
      [start, start],
      [start + minute, start + minute],
      [start + 2 * day, start + 2 * day],
    ],
  ],
  [
    'after a jump forward, renewals follow the previous clock for an hour',
    undefined,
    [
      [start, start],
      [start + year, start],
      [start + year + minute, start + minute],
      [start + year + hour - 1, start + hour - 1],
      [start + year + hour, start + year + hour],
    ],
  ],
  [
    'a clock that was ahead for a minute is trusted when it is corrected',
    undefined,
    [
      [start, start],
      [start + year, start],
      [start + minute, start + minute],
      [start + 2 * minute, start + 2 * minute],
    ],
  ],
  [
    'a clock that is set back after a steady month causes no renewals for an hour',
    steady,
    [
      [start + minute, start + minute],
      [start - year, never],
      [start - year + minute, never],
      [start - year + hour, start - year + hour],
    ],
  ],
  [
    'a server that starts a year after its last run waits for an hour',
    steady,
    [
      [start + year, start],
      [start + year + hour, start + year + hour],
    ],
  ],
  [
    'a server that was switched off for three days does not wait',
    steady,
    [[start + 3 * day, start + 3 * day]],
  ],
] as const satisfies readonly (readonly [string, ClockRecord | undefined, readonly Look[]])[]) {
  test(title, () => {
    const clock = new ClockHold(record);
    for (const [now, dueUntil] of looks as readonly Look[]) assert.equal(clock.dueUntil(now), dueUntil);
  });
}
