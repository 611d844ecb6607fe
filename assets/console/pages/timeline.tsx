/** A chart of all certificate lifetimes on one time axis. Its label and the table below give the same facts as text. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { healthOf } from '../certificates/certificate-health.ts';
import { type Life, type Row, ticks, timelineLayout } from '../certificates/timeline-layout.ts';
import type { Certificate } from '../data/shapes.ts';
import { useNow } from '../text/clock.ts';
import { dateText } from '../text/time.ts';

const axis = 26;
/** Named rows are links and need more height for touch. styles/timeline.css has the same numbers. */
const namedHeight = matchMedia('(pointer: coarse)').matches ? 40 : 28;

export function Timeline({ certificates }: { readonly certificates: readonly Certificate[] }) {
  const now = useNow();
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const lives = useMemo(() => certificates.flatMap(lifeOf), [certificates]);
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
          {named.map(({ name }) => (
            <li key={name}>
              <a href={`/certificates/${encodeURIComponent(name)}`} title={name}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      )}
      <div class="timeline-frame" ref={frame}>
        {width > 0 && (
          <svg role="img" aria-label={summary(lives)} width={width} height={height}>
            {ticks(start, end, Math.max(3, Math.floor(width / 76))).map(({ at, label }) => (
              <g key={at}>
                <line class="timeline-tick" x1={x(at)} x2={x(at)} y1={axis - 6} y2={height} />
                {Math.abs(x(at) - x(now)) > 44 && x(at) < width - 24 && x(at) > 14 && (
                  <text class="timeline-label" x={x(at)} y={13} text-anchor="middle">
                    {label}
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
          </svg>
        )}
      </div>
      <figcaption class="timeline-legend">
        <span class="timeline-key timeline-key-full">until renewal</span>
        <span class="timeline-key timeline-key-reserve">from renewal to expiry</span>
        {thin.some(({ count }) => count > 1) && (
          <span>Each thin row is a group of certificates that expire at about the same time.</span>
        )}
      </figcaption>
    </figure>
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
