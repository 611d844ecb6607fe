/** Fills the tables of a test's vault with SQL: hundreds of copies of what the vault created. */
import type { OutsideDatabase } from '../../harness/database/outside-database.ts';

/**
 * Adds copies of the first row of a table, numbered from 1. `changed` has SQL expressions of the number `n` for columns
 * that are not copied.
 */
export function copyRows(
  db: OutsideDatabase,
  table: string,
  count: number,
  changed: Readonly<Record<string, string | number>>,
): void {
  const row = db.prepare(`select * from ${table}`).get() as object;
  const kept = Object.keys(row).filter((name) => name !== 'id' && !(name in changed));
  const names = [...Object.keys(changed), ...kept].join(', ');
  db.exec(`insert into ${table} (${names})
    with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < ${count})
    select ${[...Object.values(changed), ...kept].join(', ')}
    from numbers, (select * from ${table} order by id limit 1) as copied order by n`);
}

const day = 86_400_000;

/** Adds certificates `c00001` and so on, with a version of each, of every status at `now` and with many expiries. */
export function copyCertificates(db: OutsideDatabase, count: number, now: number): void {
  const last = db.prepare('select max(id) from certificates').pluck().get() as number;
  copyRows(db, 'certificates', count, {
    name: "'c' || substr(cast(100000 + n as text), 2)",
    domains: `'["c' || n || '.example.test"]'`,
    disabled_at: `case when n % 11 = 0 then ${now} end`,
    current_version: 'case when n % 13 > 0 then 1 end',
    issuer_id: 'case when n % 5 > 0 then issuer_id end',
    last_error: "case when n % 7 = 0 then 'größer als ✓ ' || n end",
  });
  copyRows(db, 'certificate_versions', count, {
    certificate_id: `n + ${last}`,
    not_before: now - 60 * day,
    not_after: `${now} + (n * 37 % 90 - 30) * ${day}`,
  });
}
