/** The dialogs for revocation, which cannot be undone, and deletion, which can for a while. */
import { useState } from 'preact/hooks';
import { ConfirmDialog, FormDialog } from '../../components/dialog.tsx';
import { Checkbox } from '../../components/field.tsx';
import { Select } from '../../components/select.tsx';
import { ApiError, post, removeShown } from '../../data/api.ts';
import type { Certificate } from '../../data/shapes.ts';
import { navigate } from '../../router.ts';

export function RevokeDialog({
  certificate: { name, current_version: version },
  onClose,
  onRevoked,
}: {
  readonly certificate: Certificate;
  readonly onClose: () => void;
  readonly onRevoked: () => Promise<void>;
}) {
  const [reason, setReason] = useState('unspecified');
  return (
    <FormDialog
      title={`Revoke version ${version?.version} of ${name}`}
      action="Revoke"
      look="danger"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/certificates/${encodeURIComponent(name)}/revoke`, { version: version?.version, reason });
        await onRevoked();
      }}
    >
      {(errorOf) => (
        <>
          <p>The CA revokes this version, and the vault orders a replacement immediately.</p>
          <Select
            label="Reason"
            value={reason}
            onValue={setReason}
            choices={[
              { value: 'unspecified', label: 'Unspecified' },
              { value: 'keyCompromise', label: 'Private key compromised, or possibly compromised' },
              { value: 'affiliationChanged', label: 'The domains changed owner' },
              { value: 'superseded', label: 'Replaced by another certificate' },
              { value: 'cessationOfOperation', label: 'No longer needed' },
            ]}
            error={errorOf('reason')}
          />
        </>
      )}
    </FormDialog>
  );
}

export function DeleteDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [isInUse, setInUse] = useState(false);
  const [force, setForce] = useState(false);
  return (
    <ConfirmDialog
      title={`Delete ${name}`}
      action="Delete"
      word={name}
      onClose={onClose}
      onSubmit={async () => {
        try {
          const path = `/certificates/${encodeURIComponent(name)}`;
          await removeShown(path, force ? '?force=true' : '', () => navigate('/certificates'));
        } catch (error) {
          if (error instanceof ApiError && error.code === 'certificate_in_use') setInUse(true);
          throw error;
        }
      }}
    >
      <p>
        Deletes this certificate with all versions and private keys. You can restore it until the vault purges
        it, after 30 days by default.
      </p>
      <p>Machines keep the files they downloaded, but get no new versions.</p>
      {isInUse && (
        <Checkbox
          label="Delete the certificate anyway, and remove it from the allowlists of API keys"
          isChecked={force}
          onChecked={setForce}
        />
      )}
    </ConfirmDialog>
  );
}
