/** The log of notifications over all channels, newest first: delivered, queued and failed. */

import { More } from '../components/more.tsx';
import { Problem } from '../components/notice.tsx';
import { Section } from '../components/page.tsx';
import { Select } from '../components/select.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import type { NotificationDelivery } from '../data/administration-shapes.ts';
import { useFeed } from '../data/feed.ts';
import { useRefusal } from '../data/session.ts';
import { changeQuery, usePlace } from '../router.ts';

export function NotificationLog({ channels }: { readonly channels: readonly string[] }) {
  const refusal = useRefusal('whole-vault');
  return (
    <Section title="Delivery log">
      {refusal === undefined ? <Deliveries channels={channels} /> : <p class="quiet">{refusal}</p>}
    </Section>
  );
}

function Deliveries({ channels }: { readonly channels: readonly string[] }) {
  const { query } = usePlace();
  const wanted = query.get('channel') ?? '';
  const channel = channels.includes(wanted) ? wanted : '';
  const search = new URLSearchParams(channel === '' ? {} : { channel });
  const feed = useFeed<NotificationDelivery>(`/notification-deliveries?${search}`);
  const { items, error, hasMore, isBusy, more, reload } = feed;
  return (
    <>
      {channels.length > 1 && (
        <div class="filters">
          <Select
            label="Channel"
            value={channel}
            choices={[{ value: '', label: 'All' }, ...channels.map((name) => ({ value: name, label: name }))]}
            onValue={(value) => changeQuery({ channel: value })}
          />
        </div>
      )}
      {error && <Problem error={error} retry={reload} />}
      {!items && !error && <Skeleton lines={4} />}
      {items?.length === 0 && <p class="quiet">No notifications yet.</p>}
      {items !== undefined && items.length > 0 && (
        <ul class="entries">
          {items.map((delivery) => (
            <li key={delivery.id} class="entry">
              <Entry delivery={delivery} />
            </li>
          ))}
        </ul>
      )}
      <More isShown={hasMore} isBusy={isBusy} onMore={more} />
    </>
  );
}

function Entry({ delivery }: { readonly delivery: NotificationDelivery }) {
  const { event, about, status, channel, attempts, queued_at, next_attempt_at, error } = delivery;
  return (
    <>
      <div class="entry-head">
        <span class="pair">
          <span class="entry-name">
            {event.replaceAll(/[._]/g, ' ')}
            {about === null ? '' : `: ${about}`}
          </span>
          <Status status={status} />
        </span>
        <Time at={queued_at} show="both" />
      </div>
      <p class="quiet small">
        to {channel}
        {attempts > 1 && ` · ${attempts} attempts`}
        {status === 'queued' && attempts > 0 && (
          <>
            {' '}
            · next attempt <Time at={next_attempt_at} />
          </>
        )}
      </p>
      {error !== null && <p class="entry-error">{error}</p>}
    </>
  );
}
