/** Deploy targets: places that cannot fetch certificates, so that the vault installs them there. */
import { useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { Table } from '../../components/table.tsx';
import type { DeployTargetSummary } from '../../data/administration-shapes.ts';
import { getAll } from '../../data/api.ts';
import { useLoaded } from '../../data/resource.ts';
import { DeployTargetDialog } from '../../forms/deploy-target-dialog.tsx';
import { navigate } from '../../router.ts';
import { targetPage } from './target-page.ts';

export function DeployTargetsPage() {
  const { data, error, reload } = useLoaded<readonly DeployTargetSummary[]>(
    '/deploy-targets',
    getAll<DeployTargetSummary>,
    () => true,
  );
  const [isAdding, setAdding] = useState(false);
  const add = (
    <Button look="primary" needs="admin" onClick={() => setAdding(true)}>
      Add deploy target
    </Button>
  );
  return (
    <Page
      title="Deploy targets"
      lead="The vault installs certificates where no client can fetch them: on servers by SSH, in Kubernetes, on devices and in clouds."
      actions={data?.length !== 0 && add}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No deploy targets yet" actions={add}>
          <p>A machine that can run a program should fetch its certificates itself; see Fleet.</p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="Deploy targets"
          rows={data}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Name', cell: ({ name }) => <a href={targetPage(name)}>{name}</a> },
            { title: 'Type', cell: ({ type }) => type },
            { title: 'Host', cell: ({ host }) => <span class="wrap">{host}</span> },
            { title: 'Certificates', cell: ({ counts }) => counts.current + counts.waiting + counts.failing },
            { title: 'State', cell: ({ counts }) => <Status status={stateOf(counts)} /> },
          ]}
        />
      )}
      {isAdding && (
        <DeployTargetDialog
          onClose={() => setAdding(false)}
          onDone={async (name) => {
            await reload();
            navigate(targetPage(name));
          }}
        />
      )}
    </Page>
  );
}

function stateOf({ waiting, failing }: DeployTargetSummary['counts']): string {
  if (failing > 0) return 'failing';
  return waiting > 0 ? 'waiting' : 'current';
}
