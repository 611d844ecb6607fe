/** One deploy target: which certificates the vault installs there, and how that went. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/empty.tsx';
import { Menu } from '../../components/menu.tsx';
import { Problem } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { DeployTarget, TargetCertificate } from '../../data/administration-shapes.ts';
import { get, post, removeShown } from '../../data/api.ts';
import { useAction, useLoaded } from '../../data/resource.ts';
import { DeployTargetDialog } from '../../forms/deploy-target-dialog.tsx';
import { TargetCertificatesDialog } from '../../forms/target-certificates-dialog.tsx';
import { navigate, type PageProps } from '../../router.ts';

export function DeployTargetPage({ params: { name = '' } }: PageProps) {
  const path = `/deploy-targets/${encodeURIComponent(name)}`;
  const { data, error, reload } = useLoaded<DeployTarget>(path, get<DeployTarget>, () => true);
  const [dialog, setDialog] = useState<'certificates' | 'settings' | 'remove'>();
  const close = () => setDialog(undefined);
  const install = useAction(async (certificate: string) => {
    try {
      await post(`${path}/certificates/${encodeURIComponent(certificate)}/deploy`);
    } finally {
      await reload();
    }
  });
  const back = <ButtonLink href="/deploy-targets">View all targets</ButtonLink>;
  if (!data) {
    return (
      <Page title="Deploy target" actions={back}>
        {error ? (
          <Problem error={error} {...(error.code !== 'deploy_target_not_found' && { retry: reload })} />
        ) : (
          <Skeleton />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={data.name}
      lead={`${data.type} on ${data.host}`}
      actions={
        <>
          <Button look="primary" needs="admin" onClick={() => setDialog('certificates')}>
            Select certificates
          </Button>
          <Menu
            label="More actions for this target"
            items={[
              { label: 'Replace settings…', needs: 'admin', onSelect: () => setDialog('settings') },
              { label: 'Remove…', needs: 'admin', isDanger: true, onSelect: () => setDialog('remove') },
              {
                label: 'View audit log',
                href: `/audit-log?resource=${encodeURIComponent(`deploy-target:${data.name}`)}`,
              },
            ]}
          >
            More
          </Menu>
          {back}
        </>
      }
    >
      {[error, install.error].map((one, index) => one && <Problem key={index} error={one} />)}
      {data.certificates.length === 0 ? (
        <Empty title="No certificates on this target yet">
          <p>Select the certificates that the vault installs here after each renewal.</p>
        </Empty>
      ) : (
        <Table
          caption="Certificates"
          rows={data.certificates}
          keyOf={({ certificate }) => certificate}
          columns={[
            {
              title: 'Certificate',
              cell: ({ certificate, destination }) => (
                <>
                  <a href={`/certificates/${encodeURIComponent(certificate)}`}>{certificate}</a>
                  <span class="under" title={destination}>
                    {destination}
                  </span>
                </>
              ),
            },
            { title: 'State', cell: (one) => <State certificate={one} /> },
            { title: 'Version', cell: versionText },
            { title: 'Next attempt', cell: ({ next_attempt_at: at }) => <Time at={at} none="-" /> },
            {
              title: 'Actions',
              cell: ({ certificate }) => (
                <Button
                  needs="admin"
                  aria-label={`Install ${certificate} now`}
                  isBusy={install.isBusy}
                  onClick={() => void install.run(certificate)}
                >
                  Install now
                </Button>
              ),
            },
          ]}
        />
      )}
      {dialog === 'certificates' && (
        <TargetCertificatesDialog target={data} onClose={close} onDone={reload} />
      )}
      {dialog === 'settings' && <DeployTargetDialog target={data} onClose={close} onDone={reload} />}
      {dialog === 'remove' && (
        <ConfirmDialog
          title={`Remove ${data.name}?`}
          action="Remove"
          onClose={close}
          onSubmit={() => removeShown(path, '', () => navigate('/deploy-targets'))}
        >
          <p>
            The vault deletes the settings and no longer installs certificates there. What is installed stays,
            and expires.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function State({ certificate: { state, error } }: { readonly certificate: TargetCertificate }) {
  return (
    <>
      <Status status={state} />
      {error !== null && (
        <div class="reason" title={error}>
          {error}
        </div>
      )}
    </>
  );
}

function versionText({ version, current_version: current }: TargetCertificate): string {
  const shown = version === null ? 'none' : String(version);
  return current === null || version === current ? shown : `${shown} of ${current}`;
}
