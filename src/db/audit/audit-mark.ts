/**
 * The sealed high-water mark of the audit log: id and hash of the newest event, tagged, and updated by each transaction
 * that adds events. New events continue from the mark, not from the rows, so that truncation and changes stay visible.
 */
import { type Expression, sql } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import { asciiNetstring, netstring } from '../../base/netstring.ts';
import { compiledQuery, type QueryRunner } from '../compiled-query.ts';
import { storedValue } from '../engine-sql.ts';
import type { ChainEnd } from './audit-chain.ts';

const version = netstring('vault-audit-mark-1');

/** Precedes new events if the mark is missing or forged; no event has this hash, so the break shows. */
export const brokenLink = Buffer.alloc(32, 0xff);

/** The mark, or undefined if it is missing or forged. */
export async function readMark(reader: QueryRunner, integrity: Integrity): Promise<ChainEnd | undefined> {
  return markIn(await readEnd(reader), integrity);
}

/**
 * Where the next event goes; call it in the transaction that adds the event. The id is greater than all existing ids
 * and that of the mark, and the event is chained to the event of the mark.
 */
export async function chainEnd(writer: QueryRunner, integrity: Integrity): Promise<ChainEnd> {
  const row = await readEnd(writer);
  const mark = markIn(row, integrity);
  return { id: Math.max(mark?.id ?? 0, row.last ?? 0), link: mark?.link ?? brokenLink };
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

type EndRow = { readonly mark: unknown; readonly last: number | null };

async function readEnd(reader: QueryRunner): Promise<EndRow> {
  const [row] = await lookUpEnd(reader);
  return row ?? { mark: null, last: null };
}

const lookUpEnd = compiledQuery((db) =>
  db.selectNoFrom((end) => [
    end.selectFrom('settings').select('value').where('key', '=', sql.lit('audit-mark')).as('mark'),
    end
      .selectFrom('audit_events')
      .select(({ fn }) => fn.max('id').as('last'))
      .as('last'),
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
