/**
 * The tables of all lists. On a terminal a table fits its width: lists are shortened, times lose their seconds, texts
 * are cut. Elsewhere nothing is cut and lists are separated by spaces, for grep, awk and `less -S`. A row is always one
 * line.
 */
import { printable } from '../../base/printable-text.ts';
import { jsonText } from './output.ts';
import type { Terminal } from './terminal.ts';
import { cut, padded, widthOf } from './text-width.ts';

/** A column that is never cut, by its title, or one that may be: names only when nothing else is left to shorten. */
export type Column = string | { readonly title: string; readonly holds: Kind };

type Kind = 'list' | 'text' | 'time' | 'name';

/** A text, or a list. */
export type Cell = string | readonly string[];

/** How to print a list. */
export type ListForm<T> = {
  readonly columns: readonly Column[];
  readonly row: (entry: T) => readonly Cell[];
  /** What to say if there are no entries: a sentence, perhaps with a next step on a second line. */
  readonly none: string;
  /** An entry in JSON (default: the entry itself). */
  readonly json?: (entry: T) => unknown;
};

export const jsonOption = { json: { type: 'boolean', description: 'print JSON' } } as const;

/** A terminal that does not know its width, such as a serial console. */
const defaultWidth = 80;

const gap = 2;

/** The least width of lists and texts while times keep their seconds. */
const comfortable = 24;

/** What is narrowed once times have lost them, in turn, and the least width it keeps. */
const steps = [
  [comfortable, 'list', 'text'],
  [40, 'name'],
  [12, 'list', 'text'],
  [12, 'name'],
] as const;

/** Prints a list as JSON or as a table. The sentence about an empty list goes to stderr. */
export function printList<T>(
  terminal: Pick<Terminal, 'stdout' | 'stderr'>,
  { json: asJson }: { readonly json: boolean },
  entries: readonly T[],
  { columns, row, none, json = (entry) => entry }: ListForm<T>,
): void {
  if (asJson) terminal.stdout.write(jsonText(entries.map(json)));
  else if (entries.length === 0) terminal.stderr.write(`${none}\n`);
  else printTable(terminal, columns, entries.map(row));
}

/** Prints a table that fits the terminal, or is complete where stdout is none. */
export function printTable(
  { stdout }: Pick<Terminal, 'stdout'>,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): void {
  const width = stdout.isTTY ? stdout.columns || defaultWidth : Number.POSITIVE_INFINITY;
  stdout.write(table(columns, rows, width));
}

/**
 * A table with a header, columns two spaces apart, at most `width` columns wide. Unprintable characters are shown as
 * `?`.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  width = Number.POSITIVE_INFINITY,
): string {
  const titles = columns.map(titleOf);
  const isComplete = width === Number.POSITIVE_INFINITY;
  const cells = rows.map((row) => row.map(isComplete ? complete : safe));
  const natural = titles.map((title, column) =>
    cells.reduce((widest, row) => Math.max(widest, widthOf(joined(row[column]))), title.length),
  );
  const widths = isComplete ? natural : fitted(columns, cells, natural, width);
  return [titles, ...cells]
    .map((row) =>
      widths
        .map((most, column) => padded(shown(row[column] ?? '', columns[column], most), most))
        .join(' '.repeat(gap))
        .trimEnd(),
    )
    .map((line) => `${isComplete ? line : cut(line, width)}\n`)
    .join('');
}

/** The widths of the columns, shortened until the table fits or nothing is left to shorten. */
function fitted(
  columns: readonly Column[],
  cells: readonly (readonly Cell[])[],
  natural: readonly number[],
  width: number,
): number[] {
  const leasts = (least: number, ...kinds: readonly Kind[]) =>
    columns.map((column, index) =>
      typeof column === 'string' || !kinds.includes(column.holds)
        ? (natural[index] ?? 0)
        : Math.max(least, column.title.length),
    );
  const roomy = shrunk(natural, leasts(comfortable, 'list', 'text'), width);
  if (totalOf(roomy) <= width) return roomy;
  const brief = natural.map((most, index) => {
    const column = columns[index];
    if (typeof column !== 'object' || column.holds !== 'time') return most;
    return cells.reduce(
      (widest, row) => Math.max(widest, widthOf(shortTime(row[index]))),
      column.title.length,
    );
  });
  return steps.reduce((widths, [least, ...kinds]) => shrunk(widths, leasts(least, ...kinds), width), brief);
}

/** The widths with the widest columns narrowed first, none below its least width, until they fit. */
function shrunk(natural: readonly number[], leasts: readonly number[], width: number): number[] {
  const widths = natural.map((most, index) =>
    Math.max(Math.min(most, width), Math.min(most, leasts[index] ?? 0)),
  );
  for (let excess = totalOf(widths) - width; excess > 0; excess--) {
    const candidates = widths.map((one, index) => (one > (leasts[index] ?? 0) ? one : 0));
    const most = Math.max(...candidates);
    if (most === 0) break;
    widths[candidates.indexOf(most)] = most - 1;
  }
  return widths;
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, gap * (widths.length - 1));
}

/** The cell in at most `width` columns. */
function shown(cell: Cell, column: Column | undefined, width: number): string {
  const whole = joined(cell);
  if (column === undefined || typeof column === 'string' || widthOf(whole) <= width) return whole;
  if (column.holds === 'time') return shortTime(cell);
  return typeof cell === 'string' ? cut(cell, width) : shortened(cell, width);
}

/** The first entries of a list and how many more there are: `a.example.com, b.example.com, +37`. */
function shortened(entries: readonly string[], width: number): string {
  let text = '';
  let taken = 0;
  for (const entry of entries) {
    const longer = taken === 0 ? entry : `${text}, ${entry}`;
    if (widthOf(longer + more(entries.length - taken - 1)) > width) break;
    text = longer;
    taken += 1;
  }
  if (taken > 0) return text + more(entries.length - taken);
  const rest = more(entries.length - 1);
  return cut(entries[0] ?? '', width - rest.length) + rest;
}

function more(count: number): string {
  return count === 0 ? '' : `, +${count}`;
}

/** A timestamp to the minute; anything else stays. */
function shortTime(cell: Cell | undefined): string {
  const text = joined(cell);
  const [, date, time] = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):[\d.]+Z$/.exec(text) ?? [];
  return date === undefined ? text : `${date} ${time}Z`;
}

function joined(cell: Cell | undefined): string {
  return typeof cell === 'object' ? cell.join(', ') : (cell ?? '');
}

function safe(cell: Cell): Cell {
  return typeof cell === 'string' ? printable(cell) : cell.map(printable);
}

/** A cell where nothing is cut; the entries of a list as words. */
function complete(cell: Cell): string {
  return printable(typeof cell === 'string' ? cell : cell.join(' '));
}

function titleOf(column: Column): string {
  return typeof column === 'string' ? column : column.title;
}
