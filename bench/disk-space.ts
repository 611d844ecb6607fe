/**
 * The disk space of what a vault keeps, with its indexes: audit events, and versions of certificates with their keys.
 */
import BetterSqlite3 from 'better-sqlite3';
import { databaseIn } from '../src/domain/instance/vault-database.ts';
import type { Table } from './figure.ts';
import type { MeasuredDatabase } from './measured-database.ts';

const kept = [
  { name: 'audit event of a download', table: 'audit_events' },
  { name: 'certificate version', table: 'certificate_versions' },
] as const;

type Size = { readonly rows: number; readonly bytes: number };

/** Bytes per row in the SQLite database of `dataDir`, and in the one of this URL. */
export async function diskSpace(dataDir: string, server: MeasuredDatabase, url: string): Promise<Table> {
  const each = ({ rows, bytes }: Size) => bytes / rows;
  const rows: (string | number)[][] = [];
  for (const { name, table } of kept)
    rows.push([name, each(sizeInFile(dataDir, table)), each(await server.sizeOf(table, url))]);
  return { title: 'Disk space', head: ['bytes', 'SQLite', 'PostgreSQL'], rows };
}

function sizeInFile(dataDir: string, table: string): Size {
  const database = new BetterSqlite3(databaseIn(dataDir).path, { readonly: true });
  try {
    const pages = `select sum(pgsize) from dbstat where aggregate = true
      and name in (select name from sqlite_schema where tbl_name = ?)`;
    return {
      bytes: Number(database.prepare(pages).pluck().get(table)),
      rows: Number(database.prepare(`select count(*) from ${table}`).pluck().get()),
    };
  } finally {
    database.close();
  }
}
