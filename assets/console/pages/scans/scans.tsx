/** The tab Scans of the page Fleet: searches of networks for TLS servers. */
import { useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useRefresh } from '../../data/refresh.ts';
import { useList } from '../../data/resource.ts';
import { progressEvery, type Scan } from '../../data/scans.ts';
import { isActive, stateText } from '../../fleet/scan-words.ts';
import { ScanDialog } from '../../forms/scan-dialog.tsx';

export function ScansTab() {
  const { data, error, reload } = useList<Scan>('/endpoint-scans');
  useRefresh(reload, data?.some((scan) => isActive(scan, Date.now())) ?? false, progressEvery);
  const [isAdding, setAdding] = useState(false);
  const add = (
    <Button look="primary" needs="operator" onClick={() => setAdding(true)}>
      Add scan
    </Button>
  );
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton lines={4} />}
      {data?.length === 0 && (
        <Empty title="No scans yet" actions={add}>
          <p>
            A scan connects to every address of a network and lists the TLS servers with certificates that the
            vault does not have.
          </p>
          <p>
            Private networks are scanned, and those of the setting <span class="mono">endpoint_allow</span>.
          </p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <>
          <div class="tab-head">
            <p>{data.length === 1 ? '1 scan.' : `${data.length} scans.`}</p>
            {add}
          </div>
          <Table
            caption="Scans"
            rows={data}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Networks',
                cell: ({ id, networks }) => <a href={`/fleet/scans/${id}`}>{networks.join(', ')}</a>,
              },
              { title: 'Ports', cell: ({ ports }) => ports.join(', ') },
              { title: 'State', cell: stateText },
              { title: 'Servers', isNumber: true, cell: ({ found }) => found },
              { title: 'Repeats', cell: ({ interval }) => (interval === null ? 'no' : `every ${interval}`) },
              { title: 'Finished', cell: (scan) => <Time at={scan.finished_at} none="—" /> },
              { title: 'Next run', cell: (scan) => <Time at={scan.next_run_at} none="—" /> },
            ]}
          />
        </>
      )}
      {isAdding && <ScanDialog onClose={() => setAdding(false)} onDone={reload} />}
    </>
  );
}
