/** Replaces the secret of an API key, and shows the new one once. */
import { useRef, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { CopyBlock } from '../components/copy.tsx';
import { Dialog, FormDialog } from '../components/dialog.tsx';
import { Checkbox } from '../components/field.tsx';
import { Time } from '../components/time.tsx';
import type { CreatedApiKey } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import type { ApiKey } from '../data/shapes.ts';

export function RotateApiKeyDialog({
  apiKey: { id, name, previous_expires_at },
  onClose,
  onDone,
}: {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [endsNow, setEndsNow] = useState(false);
  const [rotated, setRotated] = useState<CreatedApiKey>();
  // The form closes when it is done, but the new key must stay visible.
  const isRotated = useRef(false);
  if (rotated !== undefined) {
    return (
      <Dialog title={`New key of ${name}`} onClose={onClose}>
        <div class="prose">
          <p>
            The key is shown only once. Give it to the machines that use {name}.{' '}
            {rotated.previous_expires_at === null ? (
              'The old key is no longer valid.'
            ) : (
              <>
                The old key is valid until <Time at={rotated.previous_expires_at} show="absolute" />.
              </>
            )}
          </p>
        </div>
        <CopyBlock text={rotated.key} label="API key" />
        <div class="dialog-buttons">
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={`Rotate ${name}?`}
      action="Rotate"
      onClose={() => {
        if (!isRotated.current) onClose();
      }}
      onSubmit={async () => {
        const created = await post<CreatedApiKey>(`/api-keys/${id}/rotate`, endsNow ? { overlap: '0' } : {});
        isRotated.current = true;
        setRotated(created);
        await onDone();
      }}
    >
      {() => (
        <>
          <div class="prose">
            <p>The vault creates a new key with the same permissions. The old key stays valid for 7 days.</p>
            {previous_expires_at !== null && (
              <p>The key was rotated before. The key from before that rotation ends now.</p>
            )}
          </div>
          <Checkbox
            label="End the old key at once"
            hint="For a stolen key. Machines need the new key before their next download."
            isChecked={endsNow}
            onChecked={setEndsNow}
          />
        </>
      )}
    </FormDialog>
  );
}
