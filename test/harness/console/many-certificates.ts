/**
 * Certificates in any state, as many as a test needs: SQL copies the first one of the vault, with its version. The
 * certificate inside is the same in all.
 */
import { day } from '../../../src/base/duration.ts';
import { moveGeneration, outside } from '../database/outside-database.ts';

export type Copy = {
  readonly name: string;
  /** Days until the expiry; negative after it. */
  readonly left: number;
  /** In days, by default 90. */
  readonly lifetime?: number;
  /** Why the last renewal failed. */
  readonly error?: string;
  readonly isDisabled?: boolean;
  readonly isPending?: boolean;
};

/** Adds the copies to the vault, which must have exactly one certificate and may be running. */
export function copyCertificate(dataDir: string, copies: readonly Copy[], now = Date.now()): void {
  outside(dataDir, (db) => {
    const rowOf = (table: string) => db.prepare(`select * from ${table} limit 1`).get() as object;
    const others = (table: string, ...changed: readonly string[]) =>
      Object.keys(rowOf(table)).filter((column) => column !== 'id' && !changed.includes(column));
    const set = ['name', 'current_version', 'next_renewal_at', 'last_error', 'disabled_at'];
    const kept = others('certificates', ...set).join(', ');
    const certificate = db.prepare(
      `insert into certificates (${set.join(', ')}, ${kept})
       select ?, ?, ?, ?, ?, ${kept} from certificates order by id limit 1`,
    );
    const times = ['certificate_id', 'not_before', 'not_after'];
    const same = others('certificate_versions', ...times).join(', ');
    const version = db.prepare(
      `insert into certificate_versions (${times.join(', ')}, ${same})
       select (select id from certificates where name = ?), ?, ?, ${same}
       from certificate_versions order by id limit 1`,
    );
    db.exec('begin');
    for (const { name, left, lifetime = 90, error = null, isDisabled = false, isPending = false } of copies) {
      const expiry = now + Math.round(left * day);
      const renewal = Math.max(expiry - Math.round((lifetime / 3) * day), now + day / 2);
      certificate.run(name, isPending ? null : 1, renewal, error, isDisabled ? now : null);
      if (!isPending) version.run(name, expiry - Math.round(lifetime * day), expiry);
    }
    db.exec('commit');
  });
  moveGeneration(dataDir);
}
