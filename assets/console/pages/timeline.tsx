/** Charts of lifetimes on one time axis. The label of each and the table below give the same facts as text. */
import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { healthOf } from '../certificates/certificate-health.ts';
import type { ServedLife } from '../certificates/served-lives.ts';
import { type Life, ticks, timelineLayout } from '../certificates/timeline-layout.ts';
import { Tooltips } from '../components/tooltip.tsx';
import { useWidth } from '../components/width.ts';
import type { Certificate } from '../data/shapes.ts';
import { useNow } from '../text/clock.ts';
import { dateText } from '../text/time.ts';

const axis = 26;
/** Names are links and need more height for touch. styles/timeline.css has the same numbers. */
const rowHeight = matchMedia('(pointer: coarse)').matches ? 40 : 28;

export function Timeline({ certificates }: { readonly certificates: readonly Certificate[] }) {
  const lives = useMemo(() => certificates.flatMap(lifeOf), [certificates]);
  return (
    <Chart
      lives={lives}
      label={summary}
      nameOf={(life) => (
        <a
          href={`/certificates/${encodeURIComponent(life.name)}`}
          data-tip={tipOf(life)}
          aria-description={spanOf(life)}
        >
          {life.name}
        </a>
      )}
    />
  );
}

/** The lifetimes of one certificate's versions, with a mark where endpoints serve them now. */
export function ServedTimeline({ lives }: { readonly lives: readonly ServedLife[] }) {
  return (
    <Chart
      lives={lives}
      label={servedSummary}
      nameOf={(life) => <span data-tip={tipOf(life)}>{life.name}</span>}
      marksOf={({ endpoints }) => endpoints}
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
  readonly nameOf: (life: T) => ComponentChildren;
  /** The endpoints that serve a certificate now. */
  readonly marksOf?: (life: T) => readonly string[];
}) {
  const now = useNow();
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const { rows, start, end } = useMemo(() => timelineLayout(lives, now), [lives, now]);
  if (lives.length === 0) return null;
  const height = axis + rows.length * rowHeight + 8;
  const x = (at: number) => Math.min(width, Math.max(0, ((at - start) / (end - start)) * width));
  return (
    <Tooltips>
      <figure class="timeline">
        <ul class="timeline-names">
          {rows.map((life) => (
            <li key={life.name}>{nameOf(life)}</li>
          ))}
        </ul>
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
              {rows.map((life, index) => (
                <Bar key={life.name} life={life} x={x} y={axis + index * rowHeight} />
              ))}
              <line class="timeline-now" x1={x(now)} x2={x(now)} y1={axis - 6} y2={height} />
              <text class="timeline-label timeline-now-label" x={x(now)} y={13} text-anchor="middle">
                now
              </text>
              {rows.map((life, index) => (
                <Mark
                  key={life.name}
                  endpoints={marksOf?.(life) ?? []}
                  x={x(now)}
                  y={axis + (index + 0.5) * rowHeight}
                />
              ))}
            </svg>
          )}
        </div>
        <figcaption class="timeline-legend">
          <span class="timeline-key timeline-key-full">until renewal</span>
          <span class="timeline-key timeline-key-reserve">from renewal to expiry</span>
          {marksOf && <span class="timeline-key-served">number of endpoints that serve it</span>}
        </figcaption>
      </figure>
    </Tooltips>
  );
}

/** How many endpoints serve a certificate, where its bar crosses the present. */
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
    <g
      class="timeline-mark"
      data-tip={`Served by ${endpoints.slice(0, 10).join(', ')}${endpoints.length > 10 ? ' …' : ''}`}
    >
      <rect x={x - width / 2} y={y - 10} width={width} height={20} rx={10} />
      <text x={x} y={y + 4} text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

/** The whole row shows the tooltip. */
function Bar({
  life,
  x,
  y,
}: {
  readonly life: Life;
  readonly x: (at: number) => number;
  readonly y: number;
}) {
  const left = x(life.from);
  const right = Math.max(x(life.to), left + 3);
  const renewX = life.renewAt === undefined ? right : Math.min(Math.max(x(life.renewAt), left), right);
  const bar = { x: left, y: y + rowHeight / 2 - 6, height: 12, rx: 3 };
  return (
    <g class={`bar-${life.health}`} data-tip={tipOf(life)}>
      <rect class="bar-row" x={left} y={y} width={right - left} height={rowHeight} />
      <rect class="bar-reserve" {...bar} width={right - left} />
      <rect class="bar-full" {...bar} width={renewX - left} />
    </g>
  );
}

function tipOf(life: Life): string {
  return `${life.name}: ${spanOf(life)}`;
}

function spanOf({ from, to, renewAt }: Life): string {
  const renewal = renewAt === undefined ? '' : `, renewal ${dateText(renewAt)}`;
  return `${dateText(from)} to ${dateText(to)}${renewal}`;
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
