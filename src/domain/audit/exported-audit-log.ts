/**
 * Verifies a copy of the audit log without the vault: lines of JSON as in an export or the audit file. A copy may begin
 * and end anywhere. Crashes may repeat an event or cut a line in an audit file; these are not faults.
 */
import { z } from 'zod';
import { escapedJson } from '../../base/printable-text.ts';
import { parseTimestamp } from '../../base/timestamp.ts';
import type { AuditEventRow } from '../../db/audit/audit-events.ts';
import type { Checkpoint } from './audit-checkpoint.ts';
import { plainJsonLine } from './audit-log.ts';
import { type ChainReport, ChainWalk } from './audit-verification.ts';

export type ExportReport = ChainReport & {
  /** The first event, if it cannot be verified because the previous one is unknown. */
  readonly unproved: number | undefined;
  /** Repeated events. */
  readonly repeated: number;
  /** Lines that are not events as the vault writes them. */
  readonly others: number;
};

/** Twice the events delivered together last, which an audit file may repeat. */
const remembered = 10_000;

/** Verifies the lines, also against the checkpoints. */
export async function verifyExport(
  lines: AsyncIterable<string>,
  checkpoints: readonly Checkpoint[],
): Promise<ExportReport> {
  const walk = new ChainWalk(undefined, checkpoints, undefined);
  const recent = new Map<number, string>();
  let unproved: number | undefined;
  let repeated = 0;
  let others = 0;
  let isFirst = true;
  for await (const line of lines) {
    const event = eventIn(line);
    if (event === undefined) {
      if (line !== '') others += 1;
      continue;
    }
    const { id } = event;
    // An event written both before and after an upgrade is a repetition.
    const written = escapedJson(line);
    const before = isFirst ? checkpoints.find((checkpoint) => checkpoint.id === id - 1) : undefined;
    if (before !== undefined) walk.beginAfter(before);
    if (isFirst && before === undefined && id > 1) {
      unproved = id;
      walk.adopt(event);
    } else if (isFirst || id > walk.end.id) walk.step(event);
    else if (recent.get(id) === written) repeated += 1;
    else walk.stray(id, `event ${id} comes after event ${walk.end.id}, and is not a repetition`);
    isFirst = false;
    recent.set(id, written);
    const [oldest] = recent.keys();
    if (recent.size > remembered && oldest !== undefined) recent.delete(oldest);
  }
  return { ...walk.finish(undefined), unproved, repeated, others };
}

const writtenEvent = z.strictObject({
  id: z.int().positive(),
  at: z.string(),
  actor: z.string(),
  action: z.string(),
  resource: z.string(),
  detail: z.unknown(),
  ip: z.string().nullable(),
  request_id: z.string().nullable(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
});

/**
 * Parses a line; undefined unless this or an earlier version would write exactly this line, so that all of it is
 * verified.
 */
function eventIn(line: string): AuditEventRow | undefined {
  try {
    const { at: moment, detail, hash, ...rest } = writtenEvent.parse(JSON.parse(line));
    const at = parseTimestamp(moment);
    if (at === undefined) return undefined;
    const event = { ...rest, at, detail: JSON.stringify(detail), link: Buffer.from(hash, 'hex') };
    const plain = plainJsonLine(event);
    return [plain, escapedJson(plain)].includes(`${line}\n`) ? event : undefined;
  } catch {
    // Not JSON, or not an event.
    return undefined;
  }
}
