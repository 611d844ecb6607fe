/** Revokes an enrollment, alone or with its API keys, and deletes one that no longer works. */
import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Checkbox } from '../../components/field.tsx';
import { Time } from '../../components/time.tsx';
import type { Enrollment } from '../../data/administration-shapes.ts';
import { post, removeShown } from '../../data/api.ts';

type Ending = {
  readonly enrollment: Enrollment;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void> | void;
};

export function RevokeEnrollmentDialog({
  enrollment: { id, name, state, uses, last_used_at },
  onClose,
  onDone,
}: Ending) {
  // Of the time of opening: what the dialog says and does stays the same if another operator revokes the token.
  const [isEnded] = useState(state === 'revoked');
  const [withKeys, setWithKeys] = useState(isEnded);
  return (
    <ConfirmDialog
      title={isEnded ? `Revoke the API keys of ${name}?` : `Revoke ${name}?`}
      action="Revoke"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/enrollments/${id}/revoke`, { api_keys: withKeys });
        await onDone();
      }}
    >
      <p>
        {isEnded ? 'The token is revoked already.' : 'The vault rejects the token from the next request on.'}{' '}
        {withKeys
          ? 'Machines keep the certificates that they have, and get no new ones.'
          : 'Machines that have an API key keep it.'}{' '}
        This cannot be undone.
      </p>
      <p>
        Last used: <Time at={last_used_at} none="never" show="both" />
      </p>
      {uses > 0 && !isEnded && (
        <Checkbox
          label={`Also revoke the API keys that it created (${uses.toLocaleString()})`}
          hint="If the token was stolen: you may not know which machines used it."
          isChecked={withKeys}
          onChecked={setWithKeys}
        />
      )}
    </ConfirmDialog>
  );
}

export function DeleteEnrollmentDialog({ enrollment: { id, name }, onClose, onDone }: Ending) {
  return (
    <ConfirmDialog
      title={`Delete ${name}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={() => removeShown(`/enrollments/${id}`, '', onDone)}
    >
      <p>
        The enrollment is removed from this list. Its API keys stay and keep working; they show only its
        number.
      </p>
    </ConfirmDialog>
  );
}
