/** What a benchmark hands back, how several rounds become one number, and how all of it is printed: as Markdown. */

export type Figure = {
  /** What was measured, as a line of the table. */
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'MB' | '/s' | 'µs' | 'requests' | 'times';
  /** What it should stay under. */
  readonly goal?: number;
};

export type Table = {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
};

/** Figures below each other. */
export function figureTable(title: string, figures: readonly Figure[]): Table {
  const hasGoals = figures.some(({ goal }) => goal !== undefined);
  const rows = figures.map(({ name, value, unit, goal }) => [
    name,
    `${rounded(value)} ${unit}`,
    ...(hasGoals ? [goal === undefined ? '' : `< ${goal} ${unit}`] : []),
  ]);
  return { title, head: ['', 'measured', ...(hasGoals ? ['to stay'] : [])], rows };
}

/** A table as docs/explanation/benchmarks.md has it. Numbers stand at the right. */
export function markdownOf({ title, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const isNumber = head.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  const rule = line(isNumber.map((is) => (is ? '---:' : '---')));
  const lines = rows.map((row) => line(row.map((cell) => (typeof cell === 'number' ? rounded(cell) : cell))));
  return [`**${title}**`, '', line(head), rule, ...lines].join('\n');
}

/** Three digits that mean something, and no more. */
export function rounded(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits).replace(/\B(?=(\d{3})+$)/g, digits === 0 ? ' ' : '');
}

/** The middle one, or the mean of the two middle ones: a round that something else disturbed does not move it. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('the median of nothing');
  return (lower + upper) / 2;
}
