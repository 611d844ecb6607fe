/** The state of rows that grant rights as the audit log records it, and whether rows of the database match. */
import { rowTagIn } from '../../db/audit/audit-chain.ts';
import type { AuditEventRow } from '../../db/audit/audit-events.ts';
import type { ListedRow } from '../../db/audit/row-list.ts';
import { currentClientKey, currentSecret, endedBy } from './audit-endings.ts';

type RowRecord = { readonly id: number; readonly tag: Buffer };

/** Why a row does not match the log; `id` is the event that shows it. */
export type RowFault = {
  readonly id: number | undefined;
  readonly kind: 'revived' | 'unrecorded';
  readonly message: string;
};

export class RecordedRows {
  /** Ended resources, and the event that ended each. */
  readonly #ended = new Map<string, number>();
  readonly #records = new Map<string, RowRecord>();

  /** Adds the next event that the vault wrote. */
  add(event: AuditEventRow): void {
    const { id, action, resource, link } = event;
    const ended = endedBy(event);
    if (ended !== undefined) this.#ended.set(ended, id);
    // Administrator names can be reused.
    else if (action === 'administrator.create') this.#ended.delete(resource);
    const tag = rowTagIn(link);
    // A copy, since the link shares its memory with a page of events.
    if (tag !== undefined) this.#records.set(resource, { id, tag: Buffer.from(tag) });
  }

  /** The newest record of the row. */
  recordOf(resource: string): RowRecord | undefined {
    return this.#records.get(resource);
  }

  /** Rows that differ from their last record in the log, such as an older row restored with its tag. */
  faultsOf(rows: readonly ListedRow[]): RowFault[] {
    return rows.map((row) => this.#faultOf(row)).filter((fault) => fault !== undefined);
  }

  #faultOf({ resource, label, tag, state, isLive, secret }: ListedRow): RowFault | undefined {
    if (isLive) {
      const current = secret === undefined ? [] : [secretOf(resource, secret)];
      for (const name of [resource, ...current]) {
        const id = this.#ended.get(name);
        if (id === undefined) continue;
        return {
          id,
          kind: 'revived',
          message: `event ${id} ended ${name}, but its older state was restored`,
        };
      }
    }
    // The vault rejects it in any case; "vault doctor" reports it.
    if (state === 'forged') return undefined;
    const known = this.#records.get(resource);
    if (known === undefined) {
      return {
        id: undefined,
        kind: 'unrecorded',
        message: `no event records ${label}, which is in the database`,
      };
    }
    if (tag !== null && known.tag.equals(tag)) return undefined;
    const message = `event ${known.id} recorded ${label} last, but another state of it is in the database`;
    return { id: known.id, kind: 'revived', message };
  }
}

function secretOf(resource: string, secret: string): string {
  return resource.startsWith('acme-client:')
    ? currentClientKey(resource, secret)
    : currentSecret(resource, secret);
}
