/**
 * Whether the clock may decide what cannot be undone, such as pruning: only after it has run for a week without a jump.
 * A restart continues the week, so a server that starts with a wrong clock is noticed too.
 */
import { day } from '../../base/duration.ts';
import type { Reader } from '../../db/database.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import type { TimedContext } from '../contexts.ts';

/** Time between two looks that counts as a jump: servers are switched off for shorter than this. */
export const clockJump = 4 * day;

const trial = 7 * day;

const key = 'steady-clock';

export type ClockView = {
  /** When the clock will have run long enough, in UTC milliseconds. */
  readonly steadyAt: number;
  /** Whether it jumped since the last look. */
  readonly jumped: boolean;
};

/** Since when the clock had been steady when it was last checked, by any process; undefined in a new vault. */
export async function lastClockView(
  reader: Reader,
): Promise<{ readonly since: number; readonly seen: number } | undefined> {
  const [, since, seen] = /^(\d+) (\d+)$/.exec(String(await readSetting(reader, key)))?.map(Number) ?? [];
  return since === undefined || seen === undefined ? undefined : { since, seen };
}

/** Records the time, and returns since when the clock is steady. Call it at least every few hours. */
export async function observeClock({ db, world }: TimedContext): Promise<ClockView> {
  const now = world.now();
  const { since, seen } = (await lastClockView(db.reader)) ?? { since: now, seen: now };
  const jumped = Math.abs(now - seen) > clockJump;
  const steadySince = jumped ? now : since;
  await db.write((writer) => putSetting(writer, key, `${steadySince} ${now}`));
  return { steadyAt: steadySince + trial, jumped };
}
