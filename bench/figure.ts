/** The result of a benchmark, the median of its rounds, and the Markdown tables for the docs. */

export type Figure = {
  /** The name of the measurement, a row of the table. */
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'MB' | '/s' | 'µs' | 'requests' | 'times';
  /** The upper limit. */
  readonly goal?: number;
};

export type Table = {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
};

/** A table with one figure per row. */
export function figureTable(title: string, figures: readonly Figure[]): Table {
  const hasGoals = figures.some(({ goal }) => goal !== undefined);
  const rows = figures.map(({ name, value, unit, goal }) => [
    name,
    `${rounded(value)} ${unit}`,
    ...(hasGoals ? [goal === undefined ? '' : `< ${goal} ${unit}`] : []),
  ]);
  return { title, head: ['', 'measured', ...(hasGoals ? ['to stay'] : [])], rows };
}

/** A Markdown table for docs/explanation/benchmarks.md, with numbers aligned to the right. */
export function markdownOf({ title, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const isNumber = head.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  const rule = line(isNumber.map((is) => (is ? '---:' : '---')));
  const lines = rows.map((row) => line(row.map((cell) => (typeof cell === 'number' ? rounded(cell) : cell))));
  return [`**${title}**`, '', line(head), rule, ...lines].join('\n');
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
