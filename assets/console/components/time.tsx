/** A time, relative or absolute, with the exact time on hover. */
import { useNow } from '../text/clock.ts';
import { absoluteTime, exactTimeText, relativeTime } from '../text/time.ts';

export function Time({
  at,
  show = 'relative',
  none = '—',
}: {
  /** RFC 3339, as in the API. */
  readonly at: string | null | undefined;
  readonly show?: 'relative' | 'absolute' | 'both';
  /** The text if there is no time. */
  readonly none?: string;
}) {
  const now = useNow();
  if (at == null) return <span class="quiet">{none}</span>;
  const moment = Date.parse(at);
  const far = relativeTime(moment, now);
  return (
    <time dateTime={at} title={exactTimeText(moment)}>
      {show === 'absolute' ? absoluteTime(moment) : far}
      {show === 'both' && <span class="quiet"> · {absoluteTime(moment)}</span>}
    </time>
  );
}
