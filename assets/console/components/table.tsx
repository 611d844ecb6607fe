/**
 * Tables that become cards on narrow screens. Long tables render only the visible rows, all with the same height, so
 * that thousands of rows stay fast.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export type Column<Row> = {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Aligned to the right. */
  readonly isNumber?: boolean;
  /** Left out on narrow screens. */
  readonly isExtra?: boolean;
  /** The column that names the row; by default the first one. */
  readonly isName?: boolean;
};

/** Tables with at least this many rows render only the visible ones. */
const virtualFrom = 150;

export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  /** The table's name for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
}) {
  const isVirtual = rows.length >= virtualFrom;
  const { body, first, last, above, below } = useVisibleRows(rows.length, isVirtual);
  const nameAt = Math.max(
    columns.findIndex(({ isName }) => isName),
    0,
  );
  return (
    <div class="table-frame">
      <table class={isVirtual ? 'table table-even' : 'table'} aria-rowcount={rows.length + 1}>
        <caption class="sr-only">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={cellClass(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {above > 0 && <Gap height={above} columns={columns.length} />}
          {rows.slice(first, last).map((row, index) => (
            <tr key={keyOf(row)} aria-rowindex={first + index + 2}>
              {columns.map((column, at) => {
                const content = column.cell(row);
                return at === nameAt ? (
                  <th key={column.title} scope="row" class={`${cellClass(column)} cell-name`}>
                    {content}
                  </th>
                ) : (
                  <td key={column.title} class={cellClass(column)} data-title={column.title}>
                    <div>{content}</div>
                  </td>
                );
              })}
            </tr>
          ))}
          {below > 0 && <Gap height={below} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

function Gap({ height, columns }: { readonly height: number; readonly columns: number }) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row takes no focus.
    <tr aria-hidden="true" class="table-gap">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}

function cellClass({ isNumber, isExtra }: Pick<Column<never>, 'isNumber' | 'isExtra'>): string {
  return [isNumber && 'cell-number', isExtra && 'cell-extra'].filter(Boolean).join(' ');
}

/** The range of visible rows, and the height of the rows above and below. */
function useVisibleRows(count: number, isVirtual: boolean) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [visible, setVisible] = useState({ first: 0, last: 60, height: 64 });
  useEffect(() => {
    if (!isVirtual) return;
    const measure = () => {
      const element = body.current;
      if (element === null) return;
      const height = element.querySelector('tr:not(.table-gap)')?.getBoundingClientRect().height || 64;
      const top = element.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - 12);
      const last = Math.ceil((innerHeight - top) / height) + 12;
      // Move in steps of eight rows, so that scrolling does not render at every pixel.
      const next = { first: first - (first % 8), last: last + 8 - (last % 8), height };
      setVisible((now) =>
        now.first === next.first && now.last === next.last && now.height === next.height ? now : next,
      );
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [isVirtual, count]);
  if (!isVirtual) return { body, first: 0, last: count, above: 0, below: 0 };
  const first = Math.min(visible.first, Math.max(0, count - 1));
  const last = Math.max(first, Math.min(visible.last, count));
  return { body, first, last, above: first * visible.height, below: (count - last) * visible.height };
}
