/** The page of one certificate: overview, versions, deployments, renewals, access and audit trail, with its actions. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { Menu, type MenuItem } from '../../components/menu.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Badge, Status } from '../../components/status.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { patch, post } from '../../data/api.ts';
import { useAction, useResource } from '../../data/resource.ts';
import type { Certificate, Renewal, Settings } from '../../data/shapes.ts';
import { navigate, type PageProps } from '../../router.ts';
import { CertificateAccess } from './certificate-access.tsx';
import { ChangeDialog } from './certificate-change.tsx';
import { CertificateDeployments } from './certificate-deployments.tsx';
import { DeleteDialog, RevokeDialog } from './certificate-ending.tsx';
import { CertificateOverview } from './certificate-overview.tsx';
import { CertificateRenewals } from './certificate-renewals.tsx';
import { CertificateTrail } from './certificate-trail.tsx';
import { CertificateVersions } from './certificate-versions.tsx';

type Dialog = 'change' | 'revoke' | 'delete';

export function CertificatePage({ params: { name = '' } }: PageProps) {
  const path = `/certificates/${encodeURIComponent(name)}`;
  const certificate = useResource<Certificate>(path);
  const settings = useResource<Settings>(`${path}/settings`);
  const renewals = useResource<readonly Renewal[]>(`${path}/renewals?limit=50`);
  const [dialog, setDialog] = useState<Dialog>();
  const reload = async () => {
    await Promise.all([certificate.reload(), settings.reload(), renewals.reload()]);
  };
  const renew = useAction(async () => {
    await post(`${path}/renew`);
    await reload();
  });
  const toggle = useAction(async (disabled: boolean) => {
    await patch(path, { disabled });
    await reload();
  });
  const { data, error } = certificate;
  const isMissing = error?.code === 'certificate_not_found';
  if (!data) {
    return (
      <Page title={name}>
        {error ? (
          <Problem
            error={error}
            {...(!isMissing && { retry: reload })}
            actions={<ButtonLink href="/certificates">View all certificates</ButtonLink>}
          />
        ) : (
          <Skeleton lines={8} />
        )}
      </Page>
    );
  }
  const isOpen = renewals.data?.some(({ status }) => status === 'queued' || status === 'running') ?? false;
  const isDisabled = data.status === 'disabled';
  const isOwned = data.owner !== null;
  const canRevoke = ['acme', 'local-ca'].includes(data.current_version?.source ?? '');
  const needs = 'operator' as const;
  const items: MenuItem[] = [
    ...(data.issuer === null || isOwned
      ? []
      : [{ label: 'Edit…', needs, onSelect: () => setDialog('change') }]),
    ...(isOwned
      ? []
      : isDisabled
        ? [{ label: 'Enable', needs, onSelect: () => void toggle.run(false) }]
        : [{ label: 'Disable', needs, onSelect: () => void toggle.run(true) }]),
    ...(data.issuer === null || isOwned || isDisabled
      ? []
      : [
          {
            label: 'Replace compromised key…',
            needs,
            onSelect: () => navigate(`/replacements/new?certificate=${encodeURIComponent(data.name)}`),
          },
        ]),
    ...(canRevoke ? [{ label: 'Revoke…', needs, onSelect: () => setDialog('revoke'), isDanger: true }] : []),
    { label: 'Delete…', needs, onSelect: () => setDialog('delete'), isDanger: true },
  ];
  const close = () => setDialog(undefined);
  return (
    <Page
      title={data.name}
      badge={
        <>
          <Status status={data.status} />
          {data.owner && <Badge tone="accent">ACME client {data.owner.name}</Badge>}
        </>
      }
      lead={data.domains.join(', ')}
      actions={
        <>
          {data.issuer !== null && !isOwned && (
            <Button
              look="primary"
              needs={needs}
              isBusy={renew.isBusy}
              disabled={isOpen || isDisabled}
              onClick={() => void renew.run()}
            >
              Renew now
            </Button>
          )}
          <Menu label="More actions for this certificate" items={items}>
            More
          </Menu>
        </>
      }
    >
      {[error, renew.error, toggle.error].map((one, index) => one && <Problem key={index} error={one} />)}
      <Tabs
        label="Certificate details"
        tabs={[
          {
            id: 'overview',
            label: 'Overview',
            content: () => (
              <CertificateOverview certificate={data} settings={settings.data} renewal={renewals.data?.[0]} />
            ),
          },
          { id: 'versions', label: 'Versions', content: () => <CertificateVersions certificate={data} /> },
          {
            id: 'deployments',
            label: 'Deployments',
            content: () => <CertificateDeployments certificate={data} />,
          },
          { id: 'renewals', label: 'Renewals', content: () => <CertificateRenewals renewals={renewals} /> },
          { id: 'access', label: 'Access', content: () => <CertificateAccess name={name} /> },
          { id: 'trail', label: 'Audit log', content: () => <CertificateTrail name={name} /> },
        ]}
      />
      {dialog === 'change' && settings.data && (
        <ChangeDialog settings={settings.data} onClose={close} onChanged={reload} />
      )}
      {dialog === 'revoke' && <RevokeDialog certificate={data} onClose={close} onRevoked={reload} />}
      {dialog === 'delete' && <DeleteDialog name={name} onClose={close} />}
    </Page>
  );
}
