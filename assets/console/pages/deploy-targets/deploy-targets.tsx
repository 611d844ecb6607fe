/** Deploy targets: places that cannot fetch certificates, so that the vault installs them there. */
import { useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { getAll } from '../../data/api.ts';
import type { DeployTargetSummary } from '../../data/deploy-target-shapes.ts';
import { useLoaded } from '../../data/resource.ts';
import { TargetTable } from '../../fleet/target-table.tsx';
import { targetCounts, targetPage, worstOf } from '../../fleet/targets.ts';
import { DeployTargetDialog } from '../../forms/deploy-target-dialog.tsx';
import { navigate } from '../../router.ts';

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
          <p>
            A machine that can run a program should fetch its certificates itself; see{' '}
            <a href="/fleet">Fleet</a>.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <TargetTable
          caption="Deploy targets"
          placeholder="Name, type or host"
          rows={data}
          keyOf={({ name }) => name}
          stateOf={({ counts }) => worstOf(counts)}
          textsOf={({ name, type, host }) => [name, type, host]}
          columns={[
            {
              title: 'Target',
              cell: ({ name, type, host }) => (
                <>
                  <a href={`/deploy-targets/${encodeURIComponent(name)}`}>{name}</a>
                  <span class="under" title={host}>
                    {type} on {host}
                  </span>
                </>
              ),
            },
            {
              title: 'State',
              cell: ({ counts }) => {
                const state = worstOf(counts);
                return state && <Status status={state} />;
              },
            },
            { title: 'Certificates', cell: ({ counts }) => targetCounts(counts) },
          ]}
        />
      )}
      {isAdding && (
        <DeployTargetDialog
          onClose={() => setAdding(false)}
          onDone={async (name) => navigate(targetPage(name))}
        />
      )}
    </Page>
  );
}
