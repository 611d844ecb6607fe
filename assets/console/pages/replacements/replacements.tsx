/** All emergency replacements, newest first, with their progress. */
import { progressText, reasonTexts, selectionText } from '../../certificates/replacement-words.ts';
import { ButtonLink } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { More } from '../../components/more.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFeed } from '../../data/feed.ts';
import { useRefresh } from '../../data/refresh.ts';
import type { Replacement } from '../../data/replacement-shapes.ts';

export function ReplacementsPage() {
  const { items, error, hasMore, isBusy, more, reload } = useFeed<Replacement>('/replacements');
  useRefresh(reload, items?.some(({ state }) => state === 'running') ?? false);
  const start = (
    <ButtonLink look="primary" href="/replacements/new" needs="operator">
      Replace certificates
    </ButtonLink>
  );
  return (
    <Page
      title="Replacements"
      lead="Each replacement reissues certificates, and revokes the old versions once the new ones are live."
      actions={
        <>
          {start}
          <ButtonLink href="/renewals">View renewals</ButtonLink>
        </>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      {!items && !error && <Skeleton lines={6} />}
      {items?.length === 0 && (
        <Empty title="No replacements yet">
          <p>
            For emergencies: a private key has leaked, or a CA or issuer is no longer trusted. The vault
            reissues the certificates, waits until the new versions are live or the deadline has passed, and
            then revokes the old ones. A preview shows who is affected.
          </p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <Table caption="Replacements" rows={items} keyOf={({ id }) => id} columns={columns} />
      )}
      <More isShown={hasMore} isBusy={isBusy} onMore={more} />
    </Page>
  );
}

const columns: readonly Column<Replacement>[] = [
  {
    title: 'Selected',
    cell: (replacement) => (
      <>
        <a href={`/replacements/${replacement.id}`}>{selectionText(replacement)}</a>
        <span class="under">{reasonTexts[replacement.reason]}</span>
      </>
    ),
  },
  {
    title: 'State',
    cell: (replacement) => (
      <>
        <Status status={replacement.state} />
        <span class="under">{progressText(replacement)}</span>
      </>
    ),
  },
  { title: 'Deadline', cell: ({ deadline_at }) => <Time at={deadline_at} /> },
  {
    title: 'Started',
    cell: ({ created_at, created_by }) => (
      <>
        <Time at={created_at} />
        <span class="under">by {created_by}</span>
      </>
    ),
  },
];
