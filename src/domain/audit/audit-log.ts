/** The audit log for people to read: by page, or exported as a file. */
import { escapedCell, escapedJson } from '../../base/printable-text.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { hashIn } from '../../db/audit/audit-chain.ts';
import type { AuditEventRow } from '../../db/audit/audit-events.ts';
import {
  type AuditFilter,
  type AuditOrder,
  type AuditPage,
  listAuditEvents,
} from '../../db/audit/audit-search.ts';
import { lastGivenId } from '../../db/tables/assigned-ids.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { rowsPerPortion } from '../portions.ts';

/** Search criteria. */
export type AuditSearch = AuditFilter;

/** An event as stored in the log. */
export type RecordedEvent = AuditEventRow;

export type AuditEventView = {
  id: number;
  at: string;
  actor: string;
  action: string;
  resource: string;
  detail: Record<string, unknown>;
  ip: string | null;
  request_id: string | null;
};

export const auditFormats = ['csv', 'jsonl'] as const;

export type AuditFormat = (typeof auditFormats)[number];

/**
 * `hash` is the event's hash in the chain, in hexadecimal: a copy elsewhere reveals changes here. The tag is not
 * exported.
 */
const columns = ['id', 'at', 'actor', 'action', 'resource', 'detail', 'ip', 'request_id', 'hash'] as const;

/** A page of the matching events. */
export function findAuditEvents(
  { db, world }: TimedContext,
  search: AuditSearch,
  page: AuditPage,
  order: AuditOrder = 'newest first',
): Promise<RecordedEvent[]> {
  return listAuditEvents(db.reader, world, search, page, order);
}

/** The highest id of an event so far, even if that event was deleted; 0 if there never was one. */
export function lastEventId({ db }: DatabaseContext): Promise<number> {
  return lastGivenId(db.reader);
}

/** Matching events older than the one with the id `before`, newest first. */
export async function viewAuditEvents(
  { db, world }: TimedContext,
  filter: AuditSearch,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<AuditEventView[]> {
  return (await listAuditEvents(db.reader, world, filter, page)).map(auditEventView);
}

/** Exports all matching events as text, in pieces; no transaction stays open between them. */
export async function* exportAuditEvents(
  { db, world }: TimedContext,
  filter: AuditSearch,
  format: AuditFormat,
  order: AuditOrder,
): AsyncGenerator<string> {
  if (format === 'csv') yield `${columns.join(',')}\r\n`;
  let past: number | undefined;
  for (;;) {
    const page = { [order === 'newest first' ? 'before' : 'after']: past, limit: rowsPerPortion };
    const rows = await listAuditEvents(db.reader, world, filter, page, order);
    if (rows.length === 0) return;
    yield rows.map((row) => (format === 'csv' ? csvLine(row) : jsonLine(row))).join('');
    past = rows.at(-1)?.id;
    if (rows.length < rowsPerPortion) return;
    await world.turn();
  }
}

function auditEventView({ link: _, at, detail, ...others }: RecordedEvent): AuditEventView {
  return { ...others, at: formatTimestamp(at), detail: JSON.parse(detail) as Record<string, unknown> };
}

/**
 * An event as one line of JSON, for files and log collectors. Characters that a terminal would act on are escaped,
 * because callers choose names and paths in the log.
 */
export function jsonLine(row: RecordedEvent): string {
  return escapedJson(plainJsonLine(row));
}

/** The same line as earlier versions wrote it, with control characters and bidirectional marks unescaped. */
export function plainJsonLine(row: RecordedEvent): string {
  const view = { ...auditEventView(row), hash: hashIn(row.link).toString('hex') };
  return `${JSON.stringify(Object.fromEntries(columns.map((column) => [column, view[column]])))}\n`;
}

function csvLine(row: RecordedEvent): string {
  const cells = { ...row, at: formatTimestamp(row.at), hash: hashIn(row.link).toString('hex') };
  return `${columns.map((column) => csvCell(cells[column])).join(',')}\r\n`;
}

/**
 * A cell per RFC 4180 §2. Callers choose names and paths in the log: a leading apostrophe keeps spreadsheets from
 * running formulas. Characters that a terminal would act on are escaped as in JSON, except tabs and line feeds.
 */
function csvCell(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  const harmless = escapedCell(/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text);
  return /[",\n']/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
