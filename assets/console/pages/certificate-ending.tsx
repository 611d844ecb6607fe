/** The two things that cannot be taken back: revocation and deletion. */
import { useState } from 'preact/hooks';
import { ApiError, post, remove } from '../api.ts';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { Checkbox } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { navigate } from '../router.ts';
import type { Certificate } from '../shapes.ts';

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
          <p>The CA declares it invalid for everybody, and the vault gets a new one at once.</p>
          <Select
            label="Reason"
            value={reason}
            onValue={setReason}
            choices={[
              { value: 'unspecified', label: 'Not said' },
              { value: 'keyCompromise', label: 'Others have, or may have, the private key' },
              { value: 'affiliationChanged', label: 'The names belong to somebody else now' },
              { value: 'superseded', label: 'Another one is used in its place' },
              { value: 'cessationOfOperation', label: 'It is not needed any more' },
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
          await remove(`/certificates/${encodeURIComponent(name)}${force ? '?force=true' : ''}`);
        } catch (error) {
          if (error instanceof ApiError && error.code === 'certificate_in_use') setInUse(true);
          throw error;
        }
        navigate('/certificates');
      }}
    >
      <p>All its versions and private keys are deleted with it. This cannot be undone.</p>
      <p>Machines that have it keep what they downloaded, and get nothing new.</p>
      {isInUse && (
        <Checkbox
          label="Take it off the allowlists of these keys too"
          isChecked={force}
          onChecked={setForce}
        />
      )}
    </ConfirmDialog>
  );
}
