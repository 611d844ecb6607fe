/**
 * Whether a copy of the audit log is what was recorded, without the vault: lines of JSON as an export and the audit
 * file have them. A copy begins and ends anywhere; what crashes do to an audit file, an event twice or half a line, is
 * no fault.
 */
import { z } from 'zod';
import { escapedJson } from '../../base/printable-text.ts';
import { parseTimestamp } from '../../base/timestamp.ts';
import type { AuditEventRow } from '../../db/audit/audit-events.ts';
import type { Checkpoint } from './audit-checkpoint.ts';
import { plainJsonLine } from './audit-log.ts';
import { type ChainReport, ChainWalk } from './audit-verification.ts';

export type ExportReport = ChainReport & {
  /** The first event, where nothing shows that it was not changed: the one before it is not known. */
  readonly unproved: number | undefined;
  /** Events that stood there once more. */
  readonly repeated: number;
  /** Lines that are no event as the vault writes it. */
  readonly others: number;
};

/** An audit file repeats what was delivered together last, which is half as much. */
const remembered = 10_000;

/** Walks the lines, and holds them against the checkpoints. */
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
    // An event that was written before an upgrade and again after it is a repetition.
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
 * The event of a line; undefined unless this or an earlier version would write the very same line, so that all of it is
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
    // No JSON, or another one.
    return undefined;
  }
}
