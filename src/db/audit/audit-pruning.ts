/**
 * Deletes old events from the beginning of the audit log, in small batches, and keeps the link that the rest continues
 * from.
 */
import type { World } from '../../base/world.ts';
import type { Reader, Writer } from '../database.ts';
import { putSetting, readSetting } from '../tables/settings.ts';
import { type ChainEnd, chainBeginning, hashIn } from './audit-chain.ts';
import { firstAfter, lastAuditEvent } from './audit-events.ts';

/** A few milliseconds of reading. */
const eventsLookedThrough = 10_000;

/** The last pruned event, or undefined if none was. */
export async function readPrunedThrough(reader: Reader): Promise<ChainEnd | undefined> {
  const value = await readSetting(reader, 'audit-pruned-through');
  const [, id, hash = ''] = /^(\d+) ([0-9a-f]+)$/.exec(String(value ?? '')) ?? [];
  // Earlier versions added the tag of the event.
  const isHash = hash.length === 64 || hash.length === 128;
  return isHash ? { id: Number(id), link: Buffer.from(hash.slice(0, 64), 'hex') } : undefined;
}

/**
 * The last event before the first one to keep: an event that is not older than `before` (UTC milliseconds) and not from
 * the future, as written while the clock was ahead. Undefined if all events are kept. Looks through what is to go in
 * parts, between which `world` gives other work its turn.
 */
export async function lastToPrune(
  reader: Reader,
  world: Pick<World, 'turn'>,
  { before, now }: { readonly before: number; readonly now: number },
): Promise<ChainEnd | undefined> {
  // What is added meanwhile is not old.
  const newest = (await lastAuditEvent(reader))?.id ?? 0;
  let stays: { id: number } | undefined;
  for (let through = 0; stays === undefined; await world.turn()) {
    const first = await firstAfter(reader, through);
    if (first === undefined || first.id > newest) break;
    const end = Math.min(first.id + eventsLookedThrough, newest);
    stays = await reader
      .selectFrom('audit_events')
      .select('id')
      .where('id', '>', through)
      .where('id', '<=', end)
      .where('at', '>=', before)
      .where('at', '<=', now)
      .orderBy('id')
      .limit(1)
      .executeTakeFirst();
    through = end;
  }
  const last = await reader
    .selectFrom('audit_events')
    .select(['id', 'link'])
    .where('id', '<', stays?.id ?? newest + 1)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last && { id: last.id, link: hashIn(last.link) };
}

/**
 * Deletes at most `limit` of the oldest events, up to the id `through`, and returns how many. The rest is still a
 * chain.
 */
export async function pruneAuditEvents(writer: Writer, through: number, limit: number): Promise<number> {
  const oldest = await writer
    .selectFrom('audit_events')
    .select(['id', 'link'])
    .where('id', '<=', through)
    .orderBy('id')
    .limit(limit)
    .execute();
  const last = oldest.at(-1);
  if (last === undefined) return 0;
  // An event without a link was not written by this vault; the vault's next event follows its own last one.
  const linked =
    oldest.findLast(({ link }) => link.length > 0)?.link ?? (await readPrunedThrough(writer))?.link;
  const hash = hashIn(linked ?? chainBeginning.link).toString('hex');
  await putSetting(writer, 'audit-pruned-through', `${last.id} ${hash}`);
  await writer.deleteFrom('audit_events').where('id', '<=', last.id).execute();
  return oldest.length;
}
