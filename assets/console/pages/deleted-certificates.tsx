/** Deleted certificates: restore them, or destroy them before the vault does. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../components/button.tsx';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { DeletedCertificate } from '../data/administration-shapes.ts';
import { post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { navigate } from '../router.ts';

type Opened = { readonly action: 'restore' | 'purge'; readonly certificate: DeletedCertificate };

export function DeletedCertificatesPage() {
  const { data, error, reload } = useList<DeletedCertificate>('/deleted-certificates');
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  return (
    <Page
      title="Deleted certificates"
      lead="The vault keeps deleted certificates for 30 days by default, then destroys them with their private keys."
      actions={<ButtonLink href="/certificates">View certificates</ButtonLink>}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No deleted certificates">
          <p>Certificates that you delete appear here until the vault purges them.</p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="Deleted certificates"
          rows={data}
          keyOf={({ id }) => String(id)}
          columns={columns((action, certificate) => setOpened({ action, certificate }))}
        />
      )}
      {opened?.action === 'restore' && <RestoreDialog certificate={opened.certificate} onClose={close} />}
      {opened?.action === 'purge' && (
        <ConfirmDialog
          title={`Purge ${opened.certificate.name}`}
          action="Purge"
          word={opened.certificate.name}
          onClose={close}
          onSubmit={async () => {
            await remove(`/deleted-certificates/${opened.certificate.id}`);
            await reload();
          }}
        >
          <p>Destroys all versions and private keys of this certificate now. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function RestoreDialog({
  certificate: { id, name, api_keys: keys },
  onClose,
}: {
  readonly certificate: DeletedCertificate;
  readonly onClose: () => void;
}) {
  const [as, setAs] = useState(name);
  return (
    <FormDialog
      title={`Restore ${name}`}
      action="Restore"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/deleted-certificates/${id}/restore`, as === name ? {} : { name: as });
        navigate(`/certificates/${encodeURIComponent(as)}`);
      }}
    >
      {(errorOf) => (
        <>
          <p>Restores all versions and private keys, and resumes renewals.</p>
          <TextField
            label="Name"
            hint="Choose another name if a certificate already has this one."
            value={as}
            onValue={setAs}
            error={errorOf('name')}
          />
          {keys.length > 0 && (
            <p class="quiet">
              These API keys no longer list the certificate:{' '}
              {keys.map((key) => `${key.id} (${key.name})`).join(', ')}.
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}

function columns(
  open: (action: Opened['action'], certificate: DeletedCertificate) => void,
): Column<DeletedCertificate>[] {
  return [
    {
      title: 'Name',
      cell: ({ name, domains }) => (
        <>
          <div>{name}</div>
          <div class="beneath">{domains.join(', ')}</div>
        </>
      ),
    },
    { title: 'Issuer', cell: ({ issuer }) => issuer ?? <span class="quiet">imported</span> },
    { title: 'Deleted', cell: ({ deleted_at }) => <Time at={deleted_at} /> },
    { title: 'By', cell: ({ deleted_by }) => deleted_by },
    {
      title: 'Actions',
      cell: (certificate) => (
        <>
          <Button
            needs="operator"
            aria-label={`Restore ${certificate.name}`}
            onClick={() => open('restore', certificate)}
          >
            Restore
          </Button>{' '}
          <Button
            look="danger"
            needs="admin"
            aria-label={`Purge ${certificate.name}`}
            onClick={() => open('purge', certificate)}
          >
            Purge
          </Button>
        </>
      ),
    },
  ];
}
