/** Selects the certificates of a deploy target. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../components/dialog.tsx';
import type { DeployTarget } from '../data/administration-shapes.ts';
import { patch } from '../data/api.ts';
import { CertificateNames } from './allowlist.tsx';

export function TargetCertificatesDialog({
  target: { name, host, certificates },
  onClose,
  onDone,
}: {
  readonly target: DeployTarget;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [chosen, setChosen] = useState<readonly string[]>(certificates.map(({ certificate }) => certificate));
  return (
    <FormDialog
      title={`Certificates on ${name}`}
      action="Save"
      onClose={onClose}
      onSubmit={async () => {
        await patch(`/deploy-targets/${encodeURIComponent(name)}`, { certificates: chosen });
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <p>The vault installs these certificates with their private keys on {host}.</p>
          <CertificateNames chosen={chosen} onChosen={setChosen} />
          {errorOf('certificates') && (
            <p class="field-error" role="alert">
              {errorOf('certificates')}
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}
