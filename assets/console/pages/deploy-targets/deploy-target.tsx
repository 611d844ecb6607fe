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
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { get, removeShown } from '../../data/api.ts';
import type { DeployTarget, TargetCertificate } from '../../data/deploy-target-shapes.ts';
import { useLoaded } from '../../data/resource.ts';
import { versionText } from '../../fleet/deployment-words.ts';
import { TargetTable } from '../../fleet/target-table.tsx';
import { targetCounts, targetPage, worstOf } from '../../fleet/targets.ts';
import { DeployTargetDialog } from '../../forms/deploy-target-dialog.tsx';
import { InstallDialog } from '../../forms/install-dialog.tsx';
import { TargetCertificatesDialog } from '../../forms/target-certificates-dialog.tsx';
import { navigate, type PageProps } from '../../router.ts';

export function DeployTargetPage({ params: { name = '' } }: PageProps) {
  const path = targetPage(name);
  const { data, error, reload } = useLoaded<DeployTarget>(path, get<DeployTarget>, () => true);
  const [dialog, setDialog] = useState<'certificates' | 'settings' | 'remove'>();
  const close = () => setDialog(undefined);
  const [installing, setInstalling] = useState<string>();
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
  const state = worstOf(data.counts);
  return (
    <Page
      title={data.name}
      badge={state && <Status status={state} />}
      lead={`${data.type} on ${data.host}${state ? `: ${targetCounts(data.counts)}.` : ''}`}
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
      {error && <Problem error={error} retry={reload} />}
      {data.certificates.length === 0 ? (
        <Empty title="No certificates on this target yet">
          <p>Select the certificates that the vault installs here after each renewal.</p>
        </Empty>
      ) : (
        <TargetTable
          caption="Certificates"
          placeholder="Certificate or destination"
          rows={data.certificates}
          keyOf={({ certificate }) => certificate}
          stateOf={({ state }) => state}
          textsOf={({ certificate, destination }) => [certificate, destination]}
          columns={columns(setInstalling)}
        />
      )}
      {dialog === 'certificates' && (
        <TargetCertificatesDialog target={data} onClose={close} onDone={reload} />
      )}
      {installing !== undefined && (
        <InstallDialog
          path={path}
          certificate={installing}
          onClose={() => setInstalling(undefined)}
          onDone={reload}
        />
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
            The vault deletes the settings with the credentials, and no longer installs certificates there.
            Installed certificates stay there, and expire.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function columns(onInstall: (certificate: string) => void): Column<TargetCertificate>[] {
  return [
    {
      title: 'Certificate',
      cell: ({ certificate, destination }) => (
        <>
          <a href={`/certificates/${encodeURIComponent(certificate)}?tab=deployments`}>{certificate}</a>
          <span class="under" title={destination}>
            {destination}
          </span>
        </>
      ),
    },
    {
      title: 'State',
      cell: ({ state, error }) => (
        <>
          <Status status={state} />
          {error !== null && (
            <div class="reason" title={error}>
              {error}
            </div>
          )}
        </>
      ),
    },
    {
      title: 'Version',
      cell: (one) => (
        <>
          <span class="installed-version">{versionText(one)}</span>
          {one.next_attempt_at !== null && (
            <span class="under">
              Next run <Time at={one.next_attempt_at} />
            </span>
          )}
        </>
      ),
    },
    {
      title: 'Actions',
      cell: ({ certificate }) => (
        <Button
          needs="admin"
          aria-label={`Install now: ${certificate}`}
          onClick={() => onInstall(certificate)}
        >
          Install now
        </Button>
      ),
    },
  ];
}
