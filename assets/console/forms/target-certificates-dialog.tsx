/** Selects the certificates of a deploy target. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../components/dialog.tsx';
import { patch } from '../data/api.ts';
import type { DeployTarget } from '../data/deploy-target-shapes.ts';
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
  const names = certificates.map(({ certificate }) => certificate);
  const [before] = useState<readonly string[]>(names);
  const [chosen, setChosen] = useState(before);
  // Certificates that another operator adds or removes meanwhile stay so.
  const changed = () => [
    ...names.filter((one) => chosen.includes(one) || !before.includes(one)),
    ...chosen.filter((one) => !before.includes(one)),
  ];
  return (
    <FormDialog
      title={`Certificates on ${name}`}
      action="Save"
      onClose={onClose}
      onSubmit={async () => {
        await patch(`/deploy-targets/${encodeURIComponent(name)}`, { certificates: changed() });
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
