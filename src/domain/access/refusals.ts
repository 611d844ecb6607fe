/**
 * Refusals in the audit log: recorded in full, or counted and recorded as one event per hour, so that a caller who is
 * refused a thousand times a second cannot fill the disk. Counts are written when their hour is over and at an orderly
 * stop.
 */
import { hour } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import type { Actor, AuditAction } from '../audit/audit.ts';
import type { AuditBatch } from '../audit/audit-batch.ts';
import type { DiskSpace } from '../health/disk-space.ts';

export type Refusal = {
  readonly actor: Actor;
  readonly action: Extract<AuditAction, 'access.refuse' | 'session.refuse'>;
  /** The resource of an event in full: method and path, or the same as `subject`. */
  readonly target: string;
  /**
   * The resource of an event with a count: the refused caller (`api-key:3`), or the administrator that a password was
   * tried for.
   */
  readonly subject: string;
  /** What refusals of one kind have in common: code, scope, reason. */
  readonly detail: Readonly<Record<string, string>>;
};

/** Says which refusals of a kind are among the first of their hour. */
export type RefusalCounts = { readonly howToRecord: (kind: string) => 'in full' | 'counted' };

type Counted = Omit<Refusal, 'target'> & { count: number; readonly since: number; until: number };

/** Kinds of refusals of all callers that are counted at once; each takes about half a kilobyte. */
const maxKinds = 10_000;

export class Refusals {
  readonly #audit: Pick<AuditBatch, 'append'>;
  readonly #world: World;
  readonly #disk: Pick<DiskSpace, 'state'>;
  readonly #most: number;
  #counted = new Map<string, Counted>();

  constructor(
    audit: Pick<AuditBatch, 'append'>,
    world: World,
    disk: Pick<DiskSpace, 'state'>,
    most: number = maxKinds,
  ) {
    this.#audit = audit;
    this.#world = world;
    this.#disk = disk;
    this.#most = most;
  }

  /**
   * Resolves when the refusal is durable, or immediately if it is only counted: because it is not among the first of
   * its hour, or because disk space is critical. Rejects with a StorageError.
   */
  async record(refusal: Refusal, counts: RefusalCounts): Promise<void> {
    const kind = kindOf(refusal);
    if (counts.howToRecord(kind) === 'in full' && this.#disk.state() !== 'critical') {
      const { actor, action, target: resource, detail } = refusal;
      await this.#audit.append({ actor, action, resource, detail });
      return;
    }
    await this.#count(kind, refusal);
  }

  /** Writes the counts whose hour is over, or all. Rejects with a StorageError; unwritten counts are kept. */
  async write(which: 'due' | 'all'): Promise<void> {
    if (which === 'due' && this.#disk.state() === 'critical') return;
    const now = this.#world.now();
    for (const [kind, counted] of [...this.#counted]) {
      const isDue = now >= counted.since + hour || now < counted.since;
      if (which === 'all' || isDue) await this.#writeOne(kind, counted);
    }
  }

  async #count(kind: string, { actor, action, subject, detail }: Refusal): Promise<void> {
    const now = this.#world.now();
    const known = this.#counted.get(kind);
    if (known !== undefined) {
      known.count += 1;
      known.until = now;
      return;
    }
    this.#counted.set(kind, { actor, action, subject, detail, count: 1, since: now, until: now });
    if (this.#counted.size <= this.#most) return;
    const [oldest] = this.#counted;
    if (oldest === undefined) return;
    try {
      await this.#writeOne(...oldest);
    } catch {
      // The count stays and is written later. The caller is refused in any case.
    }
  }

  async #writeOne(kind: string, counted: Counted): Promise<void> {
    // Refusals from now on start a new count.
    this.#counted.delete(kind);
    const { actor, action, subject, detail, count, since, until } = counted;
    const times = { count, since: formatTimestamp(since), until: formatTimestamp(until) };
    try {
      await this.#audit.append({
        actor: { name: actor.name },
        action,
        resource: subject,
        detail: { ...detail, ...times },
      });
    } catch (error) {
      const meanwhile = this.#counted.get(kind);
      this.#counted.set(kind, {
        ...counted,
        count: count + (meanwhile?.count ?? 0),
        until: meanwhile?.until ?? until,
      });
      throw error;
    }
  }
}

/**
 * What is counted together: no part of it can be chosen by a caller without credentials, and the address is not in it,
 * so that more addresses give no more events.
 */
function kindOf({ actor, action, subject, detail }: Refusal): string {
  return `${actor.name} ${action} ${subject} ${JSON.stringify(detail)}`;
}
