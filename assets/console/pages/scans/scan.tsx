/** One scan: its progress, and the TLS servers that it found. */
import { useEffect, useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { Menu, type MenuItem } from '../../components/menu.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { getPage } from '../../data/api.ts';
import { type Growing, growingPages } from '../../data/growing-list.ts';
import { useRefresh } from '../../data/refresh.ts';
import { useLoaded, useResource } from '../../data/resource.ts';
import { type Finding, progressEvery, type Scan } from '../../data/scans.ts';
import { isActive, namesText, serverNameOf, stateText } from '../../fleet/scan-words.ts';
import { EndpointDialog } from '../../forms/endpoint-dialog.tsx';
import { DeleteScanDialog } from '../../forms/scan-dialog.tsx';
import { navigate, type PageProps } from '../../router.ts';
import { FindingDialog } from './finding-dialog.tsx';

export function ScanPage({ params: { id = '' } }: PageProps) {
  const [known, setKnown] = useState('false');
  const scan = useResource<Scan>(`/endpoint-scans/${encodeURIComponent(id)}`);
  const found = useLoaded<Growing<Finding>>(
    `/endpoint-findings?limit=1000&scan=${encodeURIComponent(id)}${known && `&known=${known}`}`,
    (from, show) => growingPages(from, show, getPage<Finding>),
  );
  const isRunning = scan.data !== undefined && isActive(scan.data, Date.now());
  useRefresh(scan.reload, isRunning, progressEvery);
  const [isDeleting, setDeleting] = useState(false);
  const [watched, setWatched] = useState<Finding>();
  const [shown, setShown] = useState<Finding>();
  const { data } = scan;
  const { reload } = found;
  // Not with each poll: a large list has many pages.
  useEffect(() => {
    void reload();
  }, [reload, data?.found, data?.state]);
  const rows = found.data?.items;
  return (
    <Page
      title={data ? `Scan of ${data.networks.join(', ')}` : 'Scan'}
      {...(data && { lead: `${stateText(data)}. Servers found: ${data.found}.` })}
      actions={
        <>
          {data && (
            <Button look="danger" needs="operator" onClick={() => setDeleting(true)}>
              Delete…
            </Button>
          )}
          <ButtonLink href="/fleet?tab=scans">View all scans</ButtonLink>
        </>
      }
    >
      {[scan.error, found.error].map((one, index) => one && <Problem key={index} error={one} />)}
      {!data && !scan.error && <Skeleton />}
      {data && (
        <div class="narrow filter">
          <Select
            label="Certificates"
            value={known}
            choices={[
              { value: 'false', label: 'Unknown to the vault' },
              { value: 'true', label: 'Known to the vault' },
              { value: '', label: 'All' },
            ]}
            onValue={setKnown}
          />
        </div>
      )}
      {rows?.length === 0 && (
        <p class="quiet">{isRunning ? 'No such servers found yet.' : 'No such servers found.'}</p>
      )}
      {rows && rows.length > 0 && (
        <Table
          caption="Servers found"
          rows={rows}
          keyOf={(finding) => finding.id}
          columns={[
            { title: 'Address', cell: ({ address }) => address },
            { title: 'Names', cell: ({ names }) => namesText(names) },
            { title: 'Issuer', isExtra: true, cell: ({ issuer }) => issuer },
            { title: 'Expires', cell: (finding) => <Time at={finding.not_after} /> },
            { title: 'Certificate', cell: ({ certificate }) => certificate ?? 'unknown' },
            { title: 'Endpoint', cell: ({ endpoint }) => (endpoint ? 'yes' : 'no') },
            {
              title: 'Actions',
              cell: (finding) => (
                <Menu
                  label={`Actions for ${finding.address}`}
                  items={[
                    { label: 'Details…', onSelect: () => setShown(finding) },
                    ...(finding.endpoint ? [] : adoptions(finding, () => setWatched(finding))),
                  ]}
                >
                  Actions
                </Menu>
              ),
            },
          ]}
        />
      )}
      {data && isDeleting && (
        <DeleteScanDialog
          scan={data}
          onClose={() => setDeleting(false)}
          onDone={() => navigate('/fleet?tab=scans')}
        />
      )}
      {shown && <FindingDialog finding={shown} onClose={() => setShown(undefined)} />}
      {watched && (
        <EndpointDialog
          start={{
            address: watched.address,
            starttls: watched.starttls ?? '',
            serverName: serverNameOf(watched),
            certificate: watched.certificate ?? '',
          }}
          onClose={() => setWatched(undefined)}
          onDone={found.reload}
        />
      )}
    </Page>
  );
}

/** What a person can do about a server that nothing watches yet. */
function adoptions({ names, certificate }: Finding, onWatch: () => void): MenuItem[] {
  const watch: MenuItem = { label: 'Watch it…', needs: 'operator', onSelect: onWatch };
  if (certificate !== null) return [watch];
  const domains = encodeURIComponent(names.join(','));
  return [
    watch,
    { label: 'Issue one here', href: `/new-certificate?domains=${domains}` },
    { label: 'Import it, with its private key', href: '/import' },
  ];
}
