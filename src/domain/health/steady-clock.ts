/**
 * Whether the clock may decide what cannot be undone, such as pruning: only after it has run for a week without a jump. A
 * restart continues the week, so a server that starts with a wrong clock is noticed too.
 */
import { day } from '../../base/duration.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import type { TimedContext } from '../contexts.ts';

/** Time between two looks that counts as a jump: servers are switched off for shorter than this. */
const jump = 4 * day;

const trial = 7 * day;

const key = 'steady-clock';

export type ClockView = {
  /** When the clock will have run long enough, in UTC milliseconds. */
  readonly steadyAt: number;
  /** Whether it jumped since the last look. */
  readonly jumped: boolean;
};

/** Records the time, and returns since when the clock is steady. Call it at least every few hours. */
export async function observeClock({ db, world }: TimedContext): Promise<ClockView> {
  const now = world.now();
  const [, since = now, seen = now] =
    /^(\d+) (\d+)$/.exec(String(await readSetting(db.reader, key)))?.map(Number) ?? [];
  const jumped = Math.abs(now - seen) > jump;
  const steadySince = jumped ? now : since;
  await db.write((writer) => putSetting(writer, key, `${steadySince} ${now}`));
  return { steadyAt: steadySince + trial, jumped };
}
