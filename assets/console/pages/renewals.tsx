/** The renewals of all certificates: the queue and the history, with the CA's error message of those that failed. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { More } from '../components/more.tsx';
import { Problem } from '../components/notice.tsx';
import { Page, Section } from '../components/page.tsx';
import { Select } from '../components/select.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { StepList } from '../components/step-list.tsx';
import { Time } from '../components/time.tsx';
import { useFeed } from '../data/feed.ts';
import type { Renewal } from '../data/shapes.ts';
import { changeQuery, usePlace } from '../router.ts';
import { durationText } from '../text/time.ts';

const statuses = [
  { value: '', label: 'All' },
  { value: 'queued', label: 'Queued' },
  { value: 'running', label: 'Running' },
  { value: 'succeeded', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
];

export function RenewalsPage() {
  const { query } = usePlace();
  const status = query.get('status') ?? '';
  const certificate = query.get('certificate') ?? '';
  const search = new URLSearchParams({ ...(status && { status }), ...(certificate && { certificate }) });
  const { items, error, hasMore, isBusy, more, reload } = useFeed<Renewal>(`/renewals?${search}`);
  const open = items?.filter(isOpen) ?? [];
  const done = items?.filter((renewal) => !isOpen(renewal)) ?? [];
  const isFiltered = status !== '' || certificate !== '';
  return (
    <Page
      title="Renewals"
      lead="Each renewal orders a new version of a certificate from its issuer."
      actions={<ButtonLink href="/replacements">View replacements</ButtonLink>}
    >
      <div class="filters">
        <Select
          label="Status"
          value={status}
          choices={statuses}
          onValue={(value) => changeQuery({ status: value })}
        />
        {isFiltered && (
          <ButtonLink look="quiet" href="/renewals">
            {certificate === '' ? 'Show all' : `Show all, not only ${certificate}`}
          </ButtonLink>
        )}
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!items && !error && <Skeleton lines={6} />}
      {items?.length === 0 && <NoRenewals isFiltered={isFiltered} />}
      {open.length > 0 && (
        <Section title="Queue">
          <RenewalList renewals={open} isOpen />
        </Section>
      )}
      {done.length > 0 && (
        <Section title="History">
          <RenewalList renewals={done} />
        </Section>
      )}
      <More isShown={hasMore} isBusy={isBusy} onMore={more} />
    </Page>
  );
}

function NoRenewals({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No matching renewals" actions={<ButtonLink href="/renewals">Show all</ButtonLink>}>
        <p>No renewals match these filters.</p>
      </Empty>
    );
  }
  return (
    <Empty
      title="No renewals yet"
      actions={
        <ButtonLink look="primary" href="/certificates">
          View certificates
        </ButtonLink>
      }
    >
      <p>The vault renews certificates automatically. Every attempt appears here with its steps.</p>
    </Empty>
  );
}

function RenewalList({
  renewals,
  isOpen: showsSteps = false,
}: {
  readonly renewals: readonly Renewal[];
  readonly isOpen?: boolean;
}) {
  return (
    <ul class="entries">
      {renewals.map((renewal) => (
        <li key={renewal.id} class="entry">
          <RenewalEntry renewal={renewal} showsSteps={showsSteps} />
        </li>
      ))}
    </ul>
  );
}

function RenewalEntry({ renewal, showsSteps }: { readonly renewal: Renewal; readonly showsSteps: boolean }) {
  const {
    certificate,
    status,
    error,
    issuer,
    requested_by,
    requested_at,
    started_at,
    finished_at,
    version,
    steps,
  } = renewal;
  return (
    <>
      <div class="entry-head">
        <span class="pair">
          <a class="entry-name" href={`/certificates/${encodeURIComponent(certificate)}`}>
            {certificate}
          </a>
          <Status status={status} />
        </span>
        <Time at={finished_at ?? started_at ?? requested_at} show="both" />
      </div>
      <p class="quiet small">
        {[
          issuer !== null && `by ${issuer}`,
          `requested by ${requested_by}`,
          started_at !== null &&
            finished_at !== null &&
            `took ${durationText(Date.parse(finished_at) - Date.parse(started_at))}`,
          version !== null && `issued version ${version}`,
        ]
          .filter(Boolean)
          .join(' · ')}
      </p>
      {error !== null && <p class="entry-error">{error}</p>}
      {steps.length > 0 && (
        <details open={showsSteps}>
          <summary>{steps.length === 1 ? '1 step' : `${steps.length} steps`}</summary>
          <StepList steps={steps} />
        </details>
      )}
    </>
  );
}

function isOpen({ status }: Renewal): boolean {
  return status === 'queued' || status === 'running';
}
