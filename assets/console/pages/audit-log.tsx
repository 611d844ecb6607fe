/** The audit log, newest first, with filters and export. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { More } from '../components/more.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Time } from '../components/time.tsx';
import { useFeed } from '../data/feed.ts';
import type { AuditEvent } from '../data/shapes.ts';
import { AuditFilters, auditQuery } from '../forms/audit-filters.tsx';
import { usePlace } from '../router.ts';

export function AuditLogPage() {
  const { query } = usePlace();
  const filter = auditQuery(query);
  const { items, error, hasMore, isBusy, more, reload } = useFeed<AuditEvent>(`/audit-events?${filter}`);
  const exportPath = (format: string) =>
    `/api/v1/audit-events/export?${new URLSearchParams([['format', format], ...filter])}`;
  return (
    <Page
      title="Audit log"
      lead="Every change, download and denied request. The vault records each one before it responds."
      actions={
        <>
          <ButtonLink href={exportPath('csv')} download>
            Export CSV
          </ButtonLink>
          <ButtonLink href={exportPath('jsonl')} download>
            Export JSON Lines
          </ButtonLink>
        </>
      }
    >
      <AuditFilters query={query} />
      {error && <Problem error={error} retry={reload} />}
      {!items && !error && <Skeleton lines={8} />}
      {items?.length === 0 && (
        <Empty title="No matching events" actions={<ButtonLink href="/audit-log">Show all</ButtonLink>}>
          <p>No recorded events match these filters.</p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <ul class="entries" aria-label="Events, newest first">
          {items.map((event) => (
            <li key={event.id} class="entry">
              <Event {...event} />
            </li>
          ))}
        </ul>
      )}
      <More isShown={hasMore} isBusy={isBusy} onMore={more} />
    </Page>
  );
}

function Event({ at, actor, action, resource, detail, ip, request_id }: AuditEvent) {
  const details = Object.entries(detail).filter(([, value]) => value !== null);
  return (
    <>
      <div class="entry-head">
        <span class="pair">
          <span class="entry-name mono">{action}</span>
          <Resource resource={resource} />
        </span>
        <Time at={at} show="both" />
      </div>
      <p class="quiet small">
        by <a href={`/audit-log?actor=${encodeURIComponent(actor)}`}>{actor}</a>
        {ip !== null && ` from ${ip}`}
        {request_id !== null && (
          <>
            {' · request '}
            <span class="mono">{request_id}</span>
          </>
        )}
      </p>
      {details.length > 0 && (
        <dl class="details">
          {details.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <dd>{textOf(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

/** Links `certificate:www` to the page of that certificate. */
function Resource({ resource }: { readonly resource: string }) {
  const name = /^certificate:(.+)$/.exec(resource)?.[1];
  return name === undefined ? (
    <span>{resource}</span>
  ) : (
    <a href={`/certificates/${encodeURIComponent(name)}`}>{name}</a>
  );
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
