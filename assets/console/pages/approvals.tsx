/** Changes that need the approval of a second administrator: approve or reject those of others, withdraw one's own. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { PendingChange } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import { useRefresh } from '../data/refresh.ts';
import { useList } from '../data/resource.ts';
import { useSession } from '../data/session.ts';

type Opened = { readonly decision: 'approve' | 'reject'; readonly change: PendingChange };

export function ApprovalsPage() {
  const { data, error, reload } = useList<PendingChange>('/pending-changes');
  // The feed of changes is about certificates and rights.
  useRefresh(reload);
  const [opened, setOpened] = useState<Opened>();
  const own = `admin:${useSession()?.name}`;
  const close = () => setOpened(undefined);
  const decide = async ({ decision, change }: Opened) => {
    await post(`/pending-changes/${change.id}/${decision}`);
    await reload();
  };
  return (
    <Page
      title="Approvals"
      lead="Destructive changes wait here for a second administrator. Once a change is approved, the person or program that asked for it repeats it."
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No changes are waiting for approval">
          <p>
            Changes appear here when someone asks for them, and stay listed for 30 days after they expire.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="Changes that need an approval"
          rows={data}
          keyOf={({ id }) => String(id)}
          columns={columns(own, setOpened)}
        />
      )}
      {opened?.decision === 'approve' && (
        <FormDialog
          title="Approve this change"
          action="Approve"
          onClose={close}
          onSubmit={() => decide(opened)}
        >
          {() => (
            <p>
              {opened.change.summary}. {opened.change.requested_by} can then make this change once, within 24
              hours.
            </p>
          )}
        </FormDialog>
      )}
      {opened?.decision === 'reject' && (
        <ConfirmDialog
          title={opened.change.requested_by === own ? 'Withdraw this change' : 'Reject this change'}
          action={opened.change.requested_by === own ? 'Withdraw' : 'Reject'}
          onClose={close}
          onSubmit={() => decide(opened)}
        >
          <p>{opened.change.summary}.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

const tones = {
  pending: 'warning',
  approved: 'good',
  applied: 'good',
  rejected: 'quiet',
  expired: 'quiet',
} as const;

function columns(own: string, open: (opened: Opened) => void): Column<PendingChange>[] {
  return [
    { title: 'Change', cell: ({ summary }) => summary },
    {
      title: 'Requested',
      cell: ({ requested_by, requested_at }) => (
        <>
          <div>{requested_by}</div>
          <div class="beneath">
            <Time at={requested_at} />
          </div>
        </>
      ),
    },
    {
      title: 'State',
      cell: ({ state, decided_by, expires_at }) => (
        <>
          <Badge tone={tones[state]}>{state}</Badge>
          <div class="beneath">
            {state === 'pending' ? (
              <>
                expires <Time at={expires_at} />
              </>
            ) : (
              decided_by !== null && `by ${decided_by}`
            )}
          </div>
        </>
      ),
    },
    {
      title: 'Actions',
      cell: (change) => {
        if (change.state !== 'pending') return null;
        const isOwn = change.requested_by === own;
        return (
          <span class="pair pair-whole">
            <Button
              needs={change.role}
              {...(isOwn && {
                refusal: 'You requested it yourself; another administrator has to approve it.',
              })}
              aria-label={`Approve: ${change.summary}`}
              onClick={() => open({ decision: 'approve', change })}
            >
              Approve
            </Button>
            <Button
              look="quiet"
              needs={change.role}
              aria-label={`${isOwn ? 'Withdraw' : 'Reject'}: ${change.summary}`}
              onClick={() => open({ decision: 'reject', change })}
            >
              {isOwn ? 'Withdraw' : 'Reject'}
            </Button>
          </span>
        );
      },
    },
  ];
}
