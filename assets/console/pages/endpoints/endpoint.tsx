/** One endpoint: what it serves, why it has its state, and how it is checked. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { Menu } from '../../components/menu.tsx';
import { Problem } from '../../components/notice.tsx';
import { Facts, Page, Section } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { Time } from '../../components/time.tsx';
import { post } from '../../data/api.ts';
import { useEndpoint } from '../../data/endpoints.ts';
import { useAction } from '../../data/resource.ts';
import type { Endpoint } from '../../data/shapes.ts';
import { latestOf } from '../../fleet/endpoint-check.ts';
import { CertificateLink } from '../../fleet/endpoint-list.tsx';
import { endpointReason, protocolText, servedText, trustNames } from '../../fleet/endpoint-words.ts';
import { EndpointDialog, RemoveEndpointDialog } from '../../forms/endpoint-dialog.tsx';
import { navigate, type PageProps } from '../../router.ts';

export function EndpointPage({ params: { id = '' } }: PageProps) {
  const { data: loaded, error, reload } = useEndpoint(id);
  const [checked, setChecked] = useState<Endpoint>();
  const [dialog, setDialog] = useState<'edit' | 'remove'>();
  const check = useAction(async () => {
    setChecked(await post<Endpoint>(`/endpoints/${id}/check`));
    await reload();
  });
  const data = loaded && latestOf(loaded, checked);
  const back = <ButtonLink href="/fleet?tab=endpoints">View all endpoints</ButtonLink>;
  if (!data) {
    return (
      <Page title="Endpoint" actions={back}>
        {error ? (
          <Problem error={error} {...(error.code !== 'endpoint_not_found' && { retry: reload })} />
        ) : (
          <Skeleton />
        )}
      </Page>
    );
  }
  const close = () => setDialog(undefined);
  return (
    <Page
      title={data.address}
      badge={<Status status={data.state} />}
      lead={leadOf(data)}
      actions={
        <>
          <Button look="primary" needs="operator" isBusy={check.isBusy} onClick={() => void check.run()}>
            Check now
          </Button>
          <Menu
            label="More actions for this endpoint"
            items={[
              { label: 'Edit…', needs: 'operator', onSelect: () => setDialog('edit') },
              { label: 'Remove…', needs: 'operator', isDanger: true, onSelect: () => setDialog('remove') },
              {
                label: 'View audit log',
                href: `/audit-log?resource=${encodeURIComponent(`endpoint:${data.address}`)}`,
              },
            ]}
          >
            More
          </Menu>
          {back}
        </>
      }
    >
      {[error, check.error].map((one, index) => one && <Problem key={index} error={one} />)}
      <Served endpoint={data} />
      <Checks endpoint={data} />
      {dialog === 'edit' && <EndpointDialog endpoint={data} onClose={close} onDone={reload} />}
      {dialog === 'remove' && (
        <RemoveEndpointDialog
          endpoint={data}
          onClose={close}
          onDone={() => navigate('/fleet?tab=endpoints')}
        />
      )}
    </Page>
  );
}

function leadOf(endpoint: Endpoint): string | undefined {
  if (endpoint.state === 'unchecked') return 'The first check starts within seconds.';
  const reason = endpointReason(endpoint);
  return reason === undefined ? undefined : `${reason}${reason.endsWith('.') ? '' : '.'}`;
}

function Served({ endpoint }: { readonly endpoint: Endpoint }) {
  const { fingerprint_sha256: fingerprint } = endpoint;
  if (fingerprint === null) return null;
  return (
    <Section title="Served certificate">
      <div class="card">
        <Facts
          facts={[
            ['Version', endpoint.version !== null && servedText(endpoint)],
            [
              'Not current since',
              endpoint.outdated_since && <Time at={endpoint.outdated_since} show="both" />,
            ],
            ['Names', endpoint.names.join(', ')],
            ['Issuer', endpoint.issuer],
            ['Valid from', <Time key="from" at={endpoint.not_before} show="both" />],
            ['Expires', <Time key="to" at={endpoint.not_after} show="both" />],
            ['Accepted by clients', endpoint.verifies === null ? null : yesNo(endpoint.verifies)],
            ['Complete chain', endpoint.chain_complete === null ? null : yesNo(endpoint.chain_complete)],
            ['TLS version', endpoint.tls_version?.replace('TLSv', 'TLS ')],
            ['OCSP stapling', endpoint.ocsp_stapled === null ? null : yesNo(endpoint.ocsp_stapled)],
            [
              'SHA-256 fingerprint',
              <span key="hash" class="mono">
                {fingerprint}
              </span>,
            ],
          ]}
        />
      </div>
    </Section>
  );
}

function Checks({ endpoint }: { readonly endpoint: Endpoint }) {
  const { trust, ca_subjects: subjects } = endpoint;
  return (
    <Section title="Checks">
      <div class="card">
        <Facts
          facts={[
            ['Expected certificate', <CertificateLink key="certificate" name={endpoint.certificate} />],
            ['Protocol', protocolText(endpoint.starttls)],
            ['Server name', endpoint.server_name || 'none'],
            ['Clients trust', trust === 'bundle' ? subjects.join('; ') : trustNames[trust]],
            ['Interval', endpoint.interval],
            ['Last check', <Time key="last" at={endpoint.checked_at} none="never" show="both" />],
            ['Next check', <Time key="next" at={endpoint.next_check_at} show="both" />],
            ['Last change', endpoint.changed_at && <Time at={endpoint.changed_at} show="both" />],
            ['Added', <Time key="added" at={endpoint.created_at} show="both" />],
          ]}
        />
      </div>
    </Section>
  );
}

function yesNo(is: boolean): string {
  return is ? 'yes' : 'no';
}
