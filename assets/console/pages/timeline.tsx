/** Charts of lifetimes on one time axis. The label of each and the table below give the same facts as text. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { healthOf } from '../certificates/certificate-health.ts';
import type { ServedLife } from '../certificates/served-lives.ts';
import { type Life, type Row, ticks, timelineLayout } from '../certificates/timeline-layout.ts';
import type { Certificate } from '../data/shapes.ts';
import { useNow } from '../text/clock.ts';
import { dateText } from '../text/time.ts';

const axis = 26;
/** Named rows are links and need more height for touch. styles/timeline.css has the same numbers. */
const namedHeight = matchMedia('(pointer: coarse)').matches ? 40 : 28;

export function Timeline({ certificates }: { readonly certificates: readonly Certificate[] }) {
  const lives = useMemo(() => certificates.flatMap(lifeOf), [certificates]);
  return (
    <Chart
      lives={lives}
      label={summary}
      nameOf={({ name }) => (
        <a href={`/certificates/${encodeURIComponent(name)}`} title={name}>
          {name}
        </a>
      )}
    />
  );
}

/** The lifetimes of one certificate's versions, with a mark where endpoints serve them now. */
export function ServedTimeline({ lives }: { readonly lives: readonly ServedLife[] }) {
  const served = new Map(lives.map(({ name, endpoints }) => [name, endpoints]));
  return (
    <Chart
      lives={lives}
      label={servedSummary}
      nameOf={({ name }) => <span title={name}>{name}</span>}
      marksOf={({ name }) => served.get(name) ?? []}
    />
  );
}

function Chart<T extends Life>({
  lives,
  label,
  nameOf,
  marksOf,
}: {
  readonly lives: readonly T[];
  /** The picture in words. */
  readonly label: (lives: readonly T[]) => string;
  readonly nameOf: (row: Row) => ComponentChildren;
  /** The endpoints that serve a row now. */
  readonly marksOf?: (row: Row) => readonly string[];
}) {
  const now = useNow();
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const { named, thin, start, end } = useMemo(() => timelineLayout(lives, now), [lives, now]);
  if (lives.length === 0) return null;
  const thinHeight = thin.length > 30 ? 3 : 6;
  const thinTop = axis + named.length * namedHeight + (named.length > 0 && thin.length > 0 ? 10 : 0);
  const height = thinTop + thin.length * thinHeight + 8;
  const x = (at: number) => Math.min(width, Math.max(0, ((at - start) / (end - start)) * width));
  return (
    <figure class="timeline">
      {named.length > 0 && (
        <ul class="timeline-names">
          {named.map((row) => (
            <li key={row.name}>{nameOf(row)}</li>
          ))}
        </ul>
      )}
      <div class="timeline-frame" ref={frame}>
        {width > 0 && (
          <svg role="img" aria-label={label(lives)} width={width} height={height}>
            {ticks(start, end, Math.max(3, Math.floor(width / 76))).map(({ at, label: text }) => (
              <g key={at}>
                <line class="timeline-tick" x1={x(at)} x2={x(at)} y1={axis - 6} y2={height} />
                {Math.abs(x(at) - x(now)) > 44 && x(at) < width - 24 && x(at) > 14 && (
                  <text class="timeline-label" x={x(at)} y={13} text-anchor="middle">
                    {text}
                  </text>
                )}
              </g>
            ))}
            {named.map((row, index) => (
              <Bar
                key={row.name}
                row={row}
                x={x}
                y={axis + index * namedHeight + namedHeight / 2 - 6}
                height={12}
              />
            ))}
            {thin.map((row, index) => (
              <Bar key={row.name} row={row} x={x} y={thinTop + index * thinHeight} height={thinHeight - 1} />
            ))}
            <line class="timeline-now" x1={x(now)} x2={x(now)} y1={axis - 6} y2={height} />
            <text class="timeline-label timeline-now-label" x={x(now)} y={13} text-anchor="middle">
              now
            </text>
            {named.map((row, index) => (
              <Mark
                key={row.name}
                endpoints={marksOf?.(row) ?? []}
                x={x(now)}
                y={axis + (index + 0.5) * namedHeight}
              />
            ))}
          </svg>
        )}
      </div>
      <figcaption class="timeline-legend">
        <span class="timeline-key timeline-key-full">until renewal</span>
        <span class="timeline-key timeline-key-reserve">from renewal to expiry</span>
        {marksOf && <span class="timeline-key-served">number of endpoints that serve it</span>}
        {thin.some(({ count }) => count > 1) && (
          <span>Each thin row is a group of certificates that expire at about the same time.</span>
        )}
      </figcaption>
    </figure>
  );
}

/** How many endpoints serve a row, where it crosses the present. */
function Mark({
  endpoints,
  x,
  y,
}: {
  readonly endpoints: readonly string[];
  readonly x: number;
  readonly y: number;
}) {
  if (endpoints.length === 0) return null;
  const text = endpoints.length.toLocaleString();
  const width = Math.max(20, 8 * text.length + 10);
  return (
    <g class="timeline-mark">
      <title>{`served by ${endpoints.slice(0, 10).join(', ')}${endpoints.length > 10 ? ' …' : ''}`}</title>
      <rect x={x - width / 2} y={y - 10} width={width} height={20} rx={10} />
      <text x={x} y={y + 4} text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

function Bar({
  row,
  x,
  y,
  height,
}: {
  readonly row: Row;
  readonly x: (at: number) => number;
  readonly y: number;
  readonly height: number;
}) {
  const left = x(row.from);
  const right = Math.max(x(row.to), left + 3);
  const renewX = row.renewAt === undefined ? right : Math.min(Math.max(x(row.renewAt), left), right);
  const radius = height > 6 ? 3 : 0;
  return (
    <g class={`bar-${row.health}`}>
      <title>{titleOf(row)}</title>
      <rect class="bar-reserve" x={left} y={y} width={right - left} height={height} rx={radius} />
      <rect class="bar-full" x={left} y={y} width={renewX - left} height={height} rx={radius} />
    </g>
  );
}

function titleOf({ name, count, from, to, last, renewAt }: Row): string {
  if (count > 1) return `${count} certificates, expiring from ${dateText(to)} to ${dateText(last)}`;
  const renewal = renewAt === undefined ? '' : `, renewal ${dateText(renewAt)}`;
  return `${name}: ${dateText(from)} to ${dateText(to)}${renewal}`;
}

function lifeOf(certificate: Certificate): Life[] {
  const { name, current_version: version, renewal } = certificate;
  if (version === null) return [];
  return [
    {
      name,
      from: Date.parse(version.not_before),
      to: Date.parse(version.not_after),
      renewAt: renewal.next_at === null ? undefined : Date.parse(renewal.next_at),
      health: healthOf(certificate),
    },
  ];
}

function summary(lives: readonly Life[]): string {
  const count = (health: Life['health']) => lives.filter((life) => life.health === health).length;
  const first = lives.reduce((soonest, life) => (life.to < soonest.to ? life : soonest));
  return `Lifetimes of ${lives.length} certificates: ${count('bad')} broken, ${count('warning')} need attention, ${count('good')} healthy, ${count('quiet')} disabled. The first to expire is ${first.name}, ${dateText(first.to)}.`;
}

function servedSummary(lives: readonly ServedLife[]): string {
  const parts = lives.map(({ name, to, endpoints }) => {
    const count = endpoints.length === 1 ? '1 endpoint' : `${endpoints.length} endpoints`;
    return `${name}, which expires ${dateText(to)}, by ${count}`;
  });
  return `Served now: ${parts.join('; ')}.`;
}

function useWidth(frame: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (frame.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [frame]);
  return width;
}
