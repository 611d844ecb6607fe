/**
 * The sealed high-water mark of the audit log: id and hash of the newest event, tagged, and updated by each transaction
 * that adds events. New events continue from the mark, not from the rows, so that truncation and changes stay visible.
 */
import { type Expression, sql } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring } from '../../base/netstring.ts';
import { compiledQuery, type QueryRunner } from '../compiled-query.ts';
import { storedValue } from '../engine-sql.ts';
import { type ChainEnd, hashIn } from './audit-chain.ts';
import type { LostEvents } from './log-memory.ts';

const version = netstring('vault-audit-mark-1');

/** Precedes new events if the mark is missing or forged; no event has this hash, so the break shows. */
export const brokenLink = Buffer.alloc(32, 0xff);

/** Where the next event goes, and which events are missing before it. */
export type LogEnd = ChainEnd & { readonly lost?: LostEvents | undefined };

/** The mark, or undefined if it is missing or forged. */
export async function readMark(reader: QueryRunner, integrity: Integrity): Promise<ChainEnd | undefined> {
  return markIn(await readEnd(reader), integrity);
}

/**
 * Where the next event goes; call it in the transaction that adds the event. The id is greater than all existing ids
 * and that of the mark, and the event is chained to the event of the mark. If the log has stepped back behind `known`,
 * the event is chained to that one instead, so that the gap stays visible.
 */
export async function chainEnd(
  writer: QueryRunner,
  integrity: Integrity,
  known?: ChainEnd | undefined,
): Promise<LogEnd> {
  const row = await readEnd(writer, known);
  const mark = markIn(row, integrity);
  const last = Math.max(mark?.id ?? 0, row.last ?? 0);
  if (mark === undefined) return { id: last, link: brokenLink };
  const lost = known && stepBack(row, mark, known);
  if (lost === undefined || known === undefined) return { id: last, link: mark.link };
  return { id: Math.max(last, known.id), link: known.link, lost };
}

/** The events between the mark and `known` that the log no longer has; undefined if it continues `known`. */
export async function findLostEvents(
  reader: QueryRunner,
  integrity: Integrity,
  known: ChainEnd,
): Promise<LostEvents | undefined> {
  const row = await readEnd(reader, known);
  const mark = markIn(row, integrity);
  return mark && stepBack(row, mark, known);
}

function stepBack(row: EndRow, mark: ChainEnd, known: ChainEnd): LostEvents | undefined {
  if (mark.id < known.id) return { from: mark.id + 1, to: known.id };
  const link = mark.id === known.id ? mark.link : linkAt(row, known);
  return link?.equals(known.link) === true ? undefined : { from: known.id, to: known.id };
}

/** The hash of the event with the id `known.id`, also if it was the last one that was pruned. */
function linkAt({ known_link: link, pruned }: EndRow, known: ChainEnd): Buffer | undefined {
  if (link !== null) return hashIn(link);
  const through = /^(\d+) /.exec(String(pruned ?? ''))?.[1];
  return Number(through ?? 0) >= known.id ? known.link : undefined;
}

/** Seals the new end of the log. */
export async function writeAuditMark(
  writer: QueryRunner,
  integrity: Integrity,
  end: ChainEnd,
): Promise<void> {
  const tag = integrity.tag('audit mark', textOf(end));
  const value = `${end.id} ${end.link.toString('hex')} ${tag.toString('hex')}`;
  await putMark(writer, value);
}

type EndRow = {
  readonly mark: unknown;
  readonly last: number | null;
  readonly pruned: unknown;
  readonly known_link: Buffer | null;
};

async function readEnd(reader: QueryRunner, known?: ChainEnd): Promise<EndRow> {
  const [row] = await lookUpEnd(reader, known?.id ?? 0);
  return row ?? { mark: null, last: null, pruned: null, known_link: null };
}

const lookUpEnd = compiledQuery((db, known: Expression<number>) =>
  db.selectNoFrom((end) => [
    end.selectFrom('settings').select('value').where('key', '=', sql.lit('audit-mark')).as('mark'),
    end
      .selectFrom('audit_events')
      .select(({ fn }) => fn.max('id').as('last'))
      .as('last'),
    end
      .selectFrom('settings')
      .select('value')
      .where('key', '=', sql.lit('audit-pruned-through'))
      .as('pruned'),
    end.selectFrom('audit_events').select('link').where('id', '=', known).as('known_link'),
  ]),
);

const putMark = compiledQuery((db, value: Expression<string>) =>
  db
    .insertInto('settings')
    .values({ key: sql.lit('audit-mark'), value: storedValue(value) })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: sql.ref('excluded.value') })),
);

function markIn({ mark }: EndRow, integrity: Integrity): ChainEnd | undefined {
  const [, id, link = '', tag = ''] =
    /^(\d{1,15}) ([0-9a-f]{64}) ([0-9a-f]{64})$/.exec(String(mark ?? '')) ?? [];
  if (id === undefined) return undefined;
  const end = { id: Number(id), link: Buffer.from(link, 'hex') };
  return integrity.fits('audit mark', textOf(end), Buffer.from(tag, 'hex')) ? end : undefined;
}

function textOf({ id, link }: ChainEnd): string {
  return version + asciiNetstring(String(id)) + asciiNetstring(link.toString('hex'));
}
