/** One emergency replacement: its progress, and the state of each certificate. */
import { useEffect, useRef, useState } from 'preact/hooks';
import {
  progressText,
  reasonTexts,
  selectionText,
  stateTones,
} from '../../certificates/replacement-words.ts';
import { Button, ButtonLink } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/empty.tsx';
import { More } from '../../components/more.tsx';
import { Problem } from '../../components/notice.tsx';
import { Facts, Page, Section } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { get, post } from '../../data/api.ts';
import { useFeed } from '../../data/feed.ts';
import { useRefresh } from '../../data/refresh.ts';
import { type ReplacedCertificate, type Replacement, replacedStates } from '../../data/replacement-shapes.ts';
import { useLoaded } from '../../data/resource.ts';
import { changeQuery, type PageProps, usePlace } from '../../router.ts';

export function ReplacementPage({ params: { id = '' } }: PageProps) {
  const path = `/replacements/${encodeURIComponent(id)}`;
  const { data, error, reload } = useLoaded<Replacement>(path, get<Replacement>, () => true);
  useRefresh(reload, data?.state === 'running');
  const [isCanceling, setCanceling] = useState(false);
  const back = <ButtonLink href="/replacements">View all replacements</ButtonLink>;
  if (!data) {
    return (
      <Page title="Replacement" actions={back}>
        {error ? (
          <Problem error={error} {...(error.code !== 'replacement_not_found' && { retry: reload })} />
        ) : (
          <Skeleton />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={`Replacement ${data.id}`}
      badge={<Status status={data.state} />}
      lead={`${selectionText(data)}: ${progressText(data)}.`}
      actions={
        <>
          {data.state === 'running' && (
            <Button look="danger" needs="operator" onClick={() => setCanceling(true)}>
              Cancel replacement
            </Button>
          )}
          {back}
        </>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      <Facts
        facts={[
          ['Reason', reasonTexts[data.reason]],
          ['Started', <Time key="started" at={data.created_at} show="both" />],
          ['Started by', data.created_by],
          ['Deadline', <Time key="deadline" at={data.deadline_at} show="both" />],
          [
            data.state === 'canceled' ? 'Canceled' : 'Finished',
            data.finished_at && <Time key="finished" at={data.finished_at} show="both" />,
          ],
          ['Canceled by', data.canceled_by],
        ]}
      />
      <ReplacedCertificates path={`${path}/certificates`} replacement={data} />
      {isCanceling && (
        <ConfirmDialog
          title={`Cancel replacement ${data.id}?`}
          action="Cancel replacement"
          dismiss="Let it continue"
          onClose={() => setCanceling(false)}
          onSubmit={async () => {
            await post(`${path}/cancel`);
            await reload();
          }}
        >
          <p>
            New versions stay, and no further versions are revoked: old versions that are not revoked yet stay
            valid until they expire. A canceled replacement cannot continue.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function ReplacedCertificates({
  path,
  replacement: { certificates, state: whole },
}: {
  readonly path: string;
  readonly replacement: Replacement;
}) {
  const state = usePlace().query.get('state') ?? '';
  const search = new URLSearchParams(state === '' ? {} : { state });
  const { items, error, hasMore, isBusy, more, reload } = useFeed<ReplacedCertificate>(`${path}?${search}`);
  useRefresh(reload, whole === 'running');
  // No event reports the end, after which nothing is refreshed.
  const counts = JSON.stringify(certificates);
  const seen = useRef(counts);
  useEffect(() => {
    if (seen.current === counts) return;
    seen.current = counts;
    void reload();
  }, [counts, reload]);
  return (
    <Section title="Certificates">
      <div class="filters">
        <Select
          label="State"
          value={state}
          choices={[
            { value: '', label: 'All' },
            ...replacedStates.map((one) => ({
              value: one,
              label: `${one} (${certificates[one].toLocaleString()})`,
            })),
          ]}
          onValue={(value) => changeQuery({ state: value })}
        />
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!items && !error && <Skeleton lines={4} />}
      {items?.length === 0 && (
        <Empty title="No matches">
          <p>No certificates of this replacement are in this state.</p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <Table
          caption="Certificates"
          rows={items}
          keyOf={({ certificate }) => certificate}
          columns={columns}
        />
      )}
      <More label="Show more" isShown={hasMore} isBusy={isBusy} onMore={more} />
    </Section>
  );
}

const columns: readonly Column<ReplacedCertificate>[] = [
  {
    title: 'Certificate',
    cell: ({ certificate }) => <a href={`/certificates/${encodeURIComponent(certificate)}`}>{certificate}</a>,
  },
  {
    title: 'State',
    cell: ({ state, error }) => (
      <>
        <Status status={state} tone={stateTones[state]} />
        {error !== null && (
          <div class="reason" title={error}>
            {error}
          </div>
        )}
      </>
    ),
  },
  {
    title: 'Version',
    cell: ({ old_version, new_version }) =>
      new_version === null ? String(old_version) : `${old_version} → ${new_version}`,
  },
  {
    title: 'Live',
    cell: ({ live, places }) =>
      places === 0 ? <span class="quiet">unknown</span> : `on ${live} of ${places}`,
  },
  { title: 'Changed', cell: ({ changed_at }) => <Time at={changed_at} />, isExtra: true },
];
