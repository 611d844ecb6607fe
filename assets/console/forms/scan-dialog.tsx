/** Adds or deletes a scan. */
import { useState } from 'preact/hooks';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { TextArea, TextField } from '../components/field.tsx';
import { post, removeShown } from '../data/api.ts';
import type { Scan } from '../data/scans.ts';
import { scanBody } from '../fleet/scan-words.ts';

export function ScanDialog({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [networks, setNetworks] = useState('');
  const [ports, setPorts] = useState('443');
  const [interval, setInterval] = useState('');
  return (
    <FormDialog
      title="Add scan"
      action="Add"
      isReady={networks.trim() !== '' && ports.trim() !== ''}
      onClose={onClose}
      onSubmit={async () => {
        await post('/endpoint-scans', scanBody(networks, ports, interval));
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <TextArea
            label="Networks"
            hint="Private networks, such as 10.0.0.0/24. Others must be in the setting endpoint_allow."
            rows={3}
            value={networks}
            error={errorOf('networks')}
            onValue={setNetworks}
          />
          <TextField
            label="Ports"
            hint="Such as 443, 8443, 636."
            value={ports}
            error={errorOf('ports')}
            onValue={setPorts}
          />
          <TextField
            label="Repeat every (optional)"
            hint="From 1h to 90d, such as 7d. Without it, the scan runs once."
            value={interval}
            error={errorOf('interval')}
            onValue={setInterval}
          />
        </>
      )}
    </FormDialog>
  );
}

export function DeleteScanDialog({
  scan: { id, networks },
  onClose,
  onDone,
}: {
  readonly scan: Scan;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  return (
    <ConfirmDialog
      title={`Delete the scan of ${networks.join(', ')}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={() => removeShown(`/endpoint-scans/${id}`, '', onDone)}
    >
      <p>The vault deletes the scan and its results. Endpoints that you added stay.</p>
    </ConfirmDialog>
  );
}
