/**
 * Verifies the audit log: walks the whole chain, a page at a time, and reports each fault. Tags and the high-water mark
 * reveal changes made without the master key; checkpoints reveal a complete rollback to an older state.
 */
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { type ChainEnd, chainBeginning, hashIn, linkOf, tagState } from '../../db/audit/audit-chain.ts';
import { type AuditEventRow, listChainedEvents } from '../../db/audit/audit-events.ts';
import { brokenLink, readMark } from '../../db/audit/audit-mark.ts';
import { readPrunedThrough } from '../../db/audit/audit-pruning.ts';
import { type ListedRow, listTaggedRows } from '../../db/audit/row-list.ts';
import type { Database, Reader } from '../../db/database.ts';
import type { Checkpoint } from './audit-checkpoint.ts';
import { prunedThrough } from './audit-endings.ts';
import { RecordedRows } from './recorded-rows.ts';

/** A deviation from what was recorded. */
export type ChainFault = {
  /** The event where it appears. */
  readonly id: number;
  readonly kind:
    | 'changed'
    | 'missing'
    | 'added'
    | 'unchained'
    | 'untagged'
    | 'forged'
    | 'mark'
    | 'unannounced'
    | 'checkpoint'
    | 'revived'
    | 'unrecorded';
  readonly message: string;
};

export type ChainReport = {
  readonly events: number;
  /** Undefined if there is no event. */
  readonly first: number | undefined;
  readonly last: ChainEnd | undefined;
  /** The first hundred; `faultCount` counts all. */
  readonly faults: readonly ChainFault[];
  readonly faultCount: number;
};

const eventsAtOnce = 500;
const faultsTold = 100;
const olderVersion = 'an older version of the vault may have written it';
/** Max passes over rows that change while they are read. */
const rowPasses = 10;

/**
 * Verifies the whole log, also against the checkpoints. Writes nothing; events added or pruned meanwhile are not
 * faults.
 */
export async function verifyChain(
  { db }: { readonly db: Pick<Database, 'reader' | 'integrity'> },
  checkpoints: readonly Checkpoint[] = [],
): Promise<ChainReport> {
  const integrity = requireIntegrity(db);
  const walk = new ChainWalk(await readPrunedThrough(db.reader), checkpoints, integrity);
  const mark = (await readMark(db.reader, integrity)) ?? 'invalid';
  walk.expect(mark);
  await walkToEnd(walk, db.reader);
  const [oldest] = await listChainedEvents(db.reader, Number.MIN_SAFE_INTEGER, 1);
  let rows = await listTaggedRows(db.reader, integrity);
  await walkToEnd(walk, db.reader);
  const isOutdated = (row: ListedRow) => (walk.rows.recordOf(row.resource)?.id ?? 0) > row.seen;
  for (let pass = 0; pass < rowPasses && rows.some(isOutdated); pass += 1) {
    rows = await listTaggedRows(db.reader, integrity);
    await walkToEnd(walk, db.reader);
  }
  return walk.finish(
    oldest?.id,
    rows.filter((row) => !isOutdated(row)),
  );
}

async function walkToEnd(walk: ChainWalk, reader: Reader): Promise<void> {
  for (;;) {
    const events = await listChainedEvents(reader, walk.end.id, eventsAtOnce);
    const [first] = events;
    if (first === undefined) return;
    // Pruned since the last read: continue from there.
    if (first.id !== walk.end.id + 1 && walk.moveTo(await readPrunedThrough(reader))) continue;
    for (const event of events) walk.step(event);
  }
}

/** Walks along the chain, event by event, and collects the faults. */
export class ChainWalk {
  readonly #checkpoints: readonly Checkpoint[];
  readonly #faults: ChainFault[] = [];
  faultCount = 0;
  #events = 0;
  #first: number | undefined;
  #pruned: ChainEnd | undefined;
  /** The predecessor of the first event, if known. */
  #base: ChainEnd | undefined;
  /** The last event that the log itself reports as pruned. */
  #announced = 0;
  /** Undefined for exports, whose tags stay in the vault. */
  readonly #integrity: Integrity | undefined;
  #mark: ChainEnd | 'invalid' | undefined;
  /** The records of rows that grant rights. */
  readonly rows = new RecordedRows();
  /** Whether a tagged event was found: all later ones need a tag. */
  #isTagged = false;
  end: ChainEnd;

  constructor(
    pruned: ChainEnd | undefined,
    checkpoints: readonly Checkpoint[],
    integrity: Integrity | undefined,
  ) {
    this.#integrity = integrity;
    this.#checkpoints = checkpoints;
    this.#pruned = pruned;
    this.#base = pruned;
    this.end = pruned ?? chainBeginning;
  }

  /** Starts after an event known from elsewhere. */
  beginAfter(known: ChainEnd): void {
    this.#base = known;
    this.end = known;
  }

  /** Skips ahead to where the log is pruned by now; returns whether that is ahead of the walk. */
  moveTo(pruned: ChainEnd | undefined): boolean {
    if (pruned === undefined || pruned.id <= this.end.id) return false;
    this.#pruned = pruned;
    this.#base = pruned;
    this.end = pruned;
    return true;
  }

  /** Sets the high-water mark that the log must match; newer events may follow it. */
  expect(mark: ChainEnd | 'invalid'): void {
    this.#mark = mark;
  }

  step(event: AuditEventRow): void {
    const { id } = event;
    const isNext = id === this.end.id + 1;
    const link = hashIn(event.link);
    const isForged = this.#isForged(event);
    if (link.length === 0) {
      this.#fault(id, 'unchained', `event ${id} is not chained: ${olderVersion}`);
    } else if (!isNext && !this.#beginsLater(event)) {
      this.#fault(id, 'missing', `${missing(this.end.id + 1, id - 1)} missing before event ${id}`);
    } else if (linkOf(brokenLink, event).equals(link)) {
      this.#fault(id, 'mark', `the sealed mark of the log's end was removed or changed before event ${id}`);
    } else if (!linkOf(isNext ? this.end.link : chainBeginning.link, event).equals(link)) {
      this.#fault(id, 'changed', `event ${id} was modified, or does not follow the previous event`);
    } else if (isForged) {
      const isUntagged = event.link.length === link.length;
      const how = isUntagged ? `has no tag: ${olderVersion}` : 'was written or modified outside the vault';
      this.#fault(id, isUntagged ? 'untagged' : 'forged', `event ${id} ${how}`);
    }
    if (!isForged) this.#announced = prunedThrough(event) ?? this.#announced;
    if (!isForged) this.rows.add(event);
    // The vault chains its events to its own, never to forged ones.
    this.adopt(event, isForged ? this.end.link : link);
  }

  /** Continues from an event without verifying its predecessor. */
  adopt({ id, link }: AuditEventRow, next: Buffer = hashIn(link)): void {
    for (const one of this.#checkpoints) if (one.id === id) this.#compare(one, hashIn(link));
    if (this.#mark !== undefined && this.#mark !== 'invalid' && this.#mark.id === id) {
      if (!this.#mark.link.equals(hashIn(link))) {
        this.#fault(id, 'mark', `event ${id} does not match the sealed mark of the log's end`);
      }
    }
    this.#first ??= id;
    this.#events += 1;
    this.end = { id, link: next };
  }

  /** Untagged events are from before tags existed, or later from a vault of such a version that still runs. */
  #isForged({ link }: AuditEventRow): boolean {
    if (this.#integrity === undefined) return false;
    const state = tagState(this.#integrity, link);
    if (state === 'untagged') return this.#isTagged || link.length === 0;
    this.#isTagged = true;
    return state === 'forged';
  }

  /** Reports an event where there can be none. */
  stray(id: number, message: string): void {
    this.#fault(id, 'added', message);
  }

  /** `oldest` is the lowest existing id; `rows` are those that grant rights. */
  finish(oldest: number | undefined, rows: readonly ListedRow[] = []): ChainReport {
    const pruned = this.#pruned;
    const begin = pruned?.id ?? 0;
    if (oldest !== undefined && oldest <= begin) {
      this.stray(oldest, `event ${oldest} was inserted before event ${begin + 1}, where the log begins`);
    }
    if (pruned !== undefined && this.#announced < pruned.id) {
      const message = `events up to ${pruned.id} were removed without an event "audit.prune"`;
      this.#fault(pruned.id, 'unannounced', message);
    }
    const mark = this.#mark;
    if (mark === 'invalid') {
      this.#fault(this.end.id, 'mark', "the sealed mark of the log's end was removed or changed");
    } else if (mark !== undefined && this.end.id < mark.id) {
      const message = `${missing(this.end.id + 1, mark.id)} missing at the end`;
      this.#fault(this.end.id + 1, 'missing', message);
    }
    for (const checkpoint of this.#checkpoints) {
      if (checkpoint.id > this.end.id) {
        const message = `the log ends at event ${this.end.id}, before the checkpoint of event ${checkpoint.id}`;
        this.#fault(checkpoint.id, 'checkpoint', message);
      } else if (checkpoint.id === this.#base?.id) {
        this.#compare(checkpoint, this.#base.link);
      } else if (checkpoint.id < (this.#first ?? 0)) {
        const message = `event ${checkpoint.id} is no longer in the log, so its checkpoint verifies nothing; use a newer checkpoint`;
        this.#fault(checkpoint.id, 'checkpoint', message);
      }
    }
    for (const { id, kind, message } of this.rows.faultsOf(rows))
      this.#fault(id ?? this.end.id, kind, message);
    return {
      events: this.#events,
      first: this.#first,
      last: this.#events === 0 ? undefined : this.end,
      faults: this.#faults,
      faultCount: this.faultCount,
    };
  }

  /** Events removed before the chain existed are not missing in it. */
  #beginsLater(event: AuditEventRow): boolean {
    const isFirst = this.#events === 0 && this.#pruned === undefined;
    return isFirst && linkOf(chainBeginning.link, event).equals(hashIn(event.link));
  }

  #compare(checkpoint: Checkpoint, link: Buffer): void {
    if (checkpoint.link.equals(link)) return;
    this.#fault(checkpoint.id, 'checkpoint', `event ${checkpoint.id} does not match its checkpoint`);
  }

  #fault(id: number, kind: ChainFault['kind'], message: string): void {
    this.faultCount += 1;
    if (this.#faults.length < faultsTold) this.#faults.push({ id, kind, message });
  }
}

function missing(from: number, to: number): string {
  return from === to ? `event ${from} is` : `events ${from} to ${to} are`;
}
