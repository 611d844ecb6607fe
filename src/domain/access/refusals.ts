/**
 * Refusals in the audit log: in full, or counted and recorded together after an hour, so that a caller who is refused a thousand
 * times a second cannot fill the disk. What is counted is written when its hour is over and at an orderly stop.
 */
import { hour } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import type { Actor } from '../audit/audit.ts';
import type { AuditBatch } from '../audit/audit-batch.ts';
import type { DiskSpace } from '../health/disk-space.ts';

export type Refusal = {
  readonly actor: Actor;
  /** Method and path. */
  readonly target: string;
  /** Who was refused, as the audit log names it: `api-key:3`. */
  readonly subject: string;
  /** What is alike in refusals of one kind: code, scope, reason. */
  readonly detail: Readonly<Record<string, string>>;
};

type Counted = Omit<Refusal, 'target'> & { count: number; readonly since: number; until: number };

/** Kinds of refusals of all callers together that are counted at once; each takes about half a kilobyte. */
const mostKinds = 10_000;

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
    most: number = mostKinds,
  ) {
    this.#audit = audit;
    this.#world = world;
    this.#disk = disk;
    this.#most = most;
  }

  /** By what refusals are counted: one caller and one kind. */
  static kindOf({ actor, detail }: Pick<Refusal, 'actor' | 'detail'>): string {
    return `${actor.name} ${JSON.stringify(detail)}`;
  }

  /**
   * Resolves once the refusal is durable, or at once where it is only counted: it is not among the first of its hour, or space
   * runs out, and then recording refusals is what stops first. Rejects with a StorageError.
   */
  async record(refusal: Refusal, how: 'in full' | 'counted'): Promise<void> {
    if (how === 'in full' && this.#disk.state() !== 'critical') {
      const { actor, target: resource, detail } = refusal;
      await this.#audit.append({ actor, action: 'access.refuse', resource, detail });
      return;
    }
    await this.#count(refusal);
  }

  /** Writes the counts whose hour is over, or all. What cannot be written stays counted, and rejects with a StorageError. */
  async write(which: 'due' | 'all'): Promise<void> {
    if (which === 'due' && this.#disk.state() === 'critical') return;
    const now = this.#world.now();
    for (const [kind, counted] of [...this.#counted]) {
      const isDue = now >= counted.since + hour || now < counted.since;
      if (which === 'all' || isDue) await this.#writeOne(kind, counted);
    }
  }

  async #count({ actor, subject, detail }: Refusal): Promise<void> {
    const now = this.#world.now();
    const kind = Refusals.kindOf({ actor, detail });
    const known = this.#counted.get(kind);
    if (known !== undefined) {
      known.count += 1;
      known.until = now;
      return;
    }
    this.#counted.set(kind, { actor, subject, detail, count: 1, since: now, until: now });
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
    const { actor, subject, detail, count, since, until } = counted;
    const times = { count, since: formatTimestamp(since), until: formatTimestamp(until) };
    try {
      await this.#audit.append({
        actor: { name: actor.name },
        action: 'access.refuse',
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
