/** The result of a benchmark, the median of its rounds, and the Markdown tables for the docs. */

export type Figure = {
  /** The name of the measurement, a row of the table. */
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'MB' | 'kB' | '/s' | 'µs' | 'requests' | 'times';
  /** The upper limit. */
  readonly goal?: number;
};

/** A name, a number, or a number with its unit. */
export type Cell = string | number | { readonly value: number; readonly text: string };

export type Table = {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
};

/** A table with one figure per row. */
export function figureTable(title: string, figures: readonly Figure[]): Table {
  const hasGoals = figures.some(({ goal }) => goal !== undefined);
  const rows = figures.map(({ name, value, unit, goal }) => [
    name,
    { value, text: `${rounded(value)} ${unit}` },
    ...(hasGoals ? [goal === undefined ? '' : `< ${goal} ${unit}`] : []),
  ]);
  return { title, head: ['', 'measured', ...(hasGoals ? ['to stay'] : [])], rows };
}

/** A Markdown table for docs/explanation/benchmarks.md, with numbers aligned to the right. */
export function markdownOf({ title, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const isNumber = head.map((_, column) => {
    const cells = rows.map((row) => row[column]).filter((cell) => cell !== '');
    return cells.length > 0 && cells.every((cell) => typeof cell === 'number');
  });
  const rule = line(isNumber.map((is) => (is ? '---:' : '---')));
  const lines = rows.map((row) => line(row.map(textOf)));
  return [`**${title}**`, '', line(head), rule, ...lines].join('\n');
}

/**
 * The tables of two executables as one: below each row that of the other executable, and the first divided by the
 * other. Goals and other numbers that are the same in both have no ratio.
 */
export function compared(tables: readonly Table[], others: readonly Table[]): Table[] {
  return tables.map((table, at) => {
    const rows = table.rows.flatMap((row, line) => {
      const [name = '', ...cells] = row;
      const other = others[at]?.rows[line]?.slice(1) ?? [];
      const ratios = cells.map((cell, column) => ratioOf(cell, other[column] ?? ''));
      return [row, [`${textOf(name)}, other`, ...other], [`${textOf(name)}, ratio`, ...ratios]];
    });
    return { ...table, rows };
  });
}

function ratioOf(cell: Cell, other: Cell): number | string {
  const [ours, theirs] = [numberOf(cell), numberOf(other)];
  return ours === undefined || theirs === undefined || ours === theirs ? '' : ours / theirs;
}

function numberOf(cell: Cell): number | undefined {
  if (typeof cell === 'string') return undefined;
  return typeof cell === 'number' ? cell : cell.value;
}

function textOf(cell: Cell): string {
  if (typeof cell === 'string') return cell;
  return typeof cell === 'number' ? rounded(cell) : cell.text;
}

/** Rounds to three significant digits. */
export function rounded(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits).replace(/\B(?=(\d{3})+$)/g, digits === 0 ? ' ' : '');
}

/** The median, which a single disturbed round does not change. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('median of an empty list');
  return (lower + upper) / 2;
}
