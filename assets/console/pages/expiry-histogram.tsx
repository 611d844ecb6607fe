/** How many certificates expire in each week, by health. Each week filters the list below. */
import { useMemo, useRef, useState } from 'preact/hooks';
import { byHealth, type Health, healths } from '../certificates/certificate-health.ts';
import {
  axisTop,
  dayText,
  type Expiry,
  expiryWeeks,
  isEndBucket,
  type Week,
  weekSummary,
} from '../certificates/expiry-weeks.ts';
import { Tooltips } from '../components/tooltip.tsx';
import { useWidth } from '../components/width.ts';
import { changeQuery, usePlace } from '../router.ts';
import { useNow } from '../text/clock.ts';

/** In pixels; styles/overview.css has the first two, too. A week is wide enough for a finger. */
const [scaleWidth, endWidth, weekWidth, labelWidth] = [40, 52, 26, 52];
/** A year. More weeks would be too thin to tell apart. */
const mostWeeks = 53;

const legend: Readonly<Record<Health, string>> = {
  bad: 'expired',
  warning: 'failing or expiring soon',
  good: 'healthy',
  quiet: 'disabled',
};

export function ExpiryHistogram({ expiries }: { readonly expiries: readonly Expiry[] }) {
  const now = useNow();
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const room = width - scaleWidth - 2 * endWidth;
  const most = Math.max(1, Math.min(mostWeeks, Math.floor(room / weekWidth)));
  const buckets = useMemo(() => expiryWeeks(expiries, now, most), [expiries, now, most]);
  const weeks = buckets.filter(({ id }) => !isEndBucket(id));
  // The buckets at the ends may hold most certificates; the weeks would be too low on their scale.
  const largest = (some: readonly Week[]) => Math.max(...some.map(({ total }) => total), 0);
  const top = axisTop(largest(weeks) || largest(buckets));
  const each = Math.ceil((labelWidth * weeks.length) / room);
  const labelled = new Set(weeks.filter((_, index) => index % each === Math.floor(each / 2)));
  const shown = new Set(buckets.flatMap(({ counts }) => counts.map(({ group }) => healths[group])));
  return (
    <Tooltips>
      <figure class="histogram">
        <div class="histogram-frame" ref={frame}>
          {width > 0 && (
            <>
              <div class="histogram-scale" aria-hidden="true">
                <span>{top.toLocaleString()}</span>
                <span>{top % 2 === 0 && (top / 2).toLocaleString()}</span>
              </div>
              <Buckets buckets={buckets} labelled={labelled} top={top} now={now} />
            </>
          )}
        </div>
        <figcaption class="timeline-legend">
          {[...shown].sort(byHealth).map((health) => (
            <span key={health} class={`histogram-key histogram-key-${health}`}>
              {legend[health]}
            </span>
          ))}
        </figcaption>
      </figure>
    </Tooltips>
  );
}

/** One tab stop for all, with arrow keys between them. A week without certificates is no button. */
function Buckets({
  buckets,
  labelled,
  top,
  now,
}: {
  readonly buckets: readonly Week[];
  readonly labelled: ReadonlySet<Week>;
  readonly top: number;
  readonly now: number;
}) {
  const { query } = usePlace();
  const selected = query.get('week');
  const [reached, setReached] = useState('');
  const full = buckets.filter(({ total }) => total > 0);
  const stop = [reached, selected].find((id) => full.some((week) => week.id === id)) ?? full[0]?.id;
  const onKeyDown = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }) => {
    const at = full.findIndex(({ id }) => id === stop);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: full.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.currentTarget.querySelectorAll('button')[Math.max(0, Math.min(next, full.length - 1))]?.focus();
  };
  return (
    <div class="histogram-weeks" role="toolbar" aria-label="Expiries per week" onKeyDown={onKeyDown}>
      {buckets.map((week) => {
        const { id, total } = week;
        const isEnd = isEndBucket(id);
        const column = (
          <>
            <Stack week={week} top={top} />
            <span class="histogram-label" aria-hidden="true">
              {isEnd && (id === 'expired' ? 'Expired' : 'Later')}
              {labelled.has(week) && dayText(id)}
            </span>
          </>
        );
        const look = `histogram-week${isEnd ? ' histogram-end' : ''}`;
        if (total === 0) {
          return (
            <span key={id} class={look} aria-hidden="true">
              {column}
            </span>
          );
        }
        const text = weekSummary(week, now);
        return (
          <button
            key={id}
            type="button"
            class={look}
            data-tip={text}
            aria-label={text}
            aria-pressed={selected === id}
            tabIndex={id === stop ? 0 : -1}
            onFocus={() => setReached(id)}
            onClick={() => changeQuery({ week: selected === id ? '' : id })}
          >
            {column}
          </button>
        );
      })}
    </div>
  );
}

/** The bar of a bucket; those that need attention are at its foot. */
function Stack({ week: { id, total, counts }, top }: { readonly week: Week; readonly top: number }) {
  const isCut = total > top;
  const byColor = Map.groupBy(counts, ({ group }) => healths[group]);
  return (
    <span aria-hidden="true" class={isCut ? 'histogram-stack is-cut' : 'histogram-stack'}>
      {isEndBucket(id) && <span class="histogram-count" data-count={total.toLocaleString()} />}
      {[...byColor].reverse().map(([health, some]) => (
        <span
          key={health}
          class={`histogram-part histogram-${health}`}
          style={{
            height: `${(some.reduce((sum, { count }) => sum + count, 0) / Math.max(top, total)) * 100}%`,
          }}
        />
      ))}
    </span>
  );
}
