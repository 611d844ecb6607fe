/** Installs a certificate on a deploy target while the person waits, and says how that went. */
import { useLayoutEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Spinner } from '../components/spinner.tsx';
import { post } from '../data/api.ts';
import type { TargetCertificate } from '../data/deploy-target-shapes.ts';
import { useAction } from '../data/resource.ts';

export function InstallDialog({
  path,
  certificate,
  onClose,
  onDone,
}: {
  /** Of the target, after `/api/v1`. */
  readonly path: string;
  readonly certificate: string;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [result, setResult] = useState<TargetCertificate>();
  const { run, isBusy, error } = useAction(async () => {
    try {
      setResult(await post(`${path}/certificates/${encodeURIComponent(certificate)}/deploy`));
    } finally {
      await onDone();
    }
  });
  useLayoutEffect(() => void run(), []);
  return (
    <Dialog title={`Install ${certificate}`} onClose={onClose}>
      <div class="stack">
        {isBusy && <Spinner label="Installing; this can take a minute" />}
        {!isBusy && error && <Problem error={error} retry={run} />}
        {!isBusy && result && <Result result={result} />}
        <div class="dialog-buttons">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  );
}

/** The certificate may be installed although the command behind it failed. */
function Result({ result: { version, error } }: { readonly result: TargetCertificate }) {
  if (error !== null) return <Notice tone="bad">{error}</Notice>;
  if (version === null) {
    return (
      <Notice tone="warning">No version issued yet. The vault installs the first one immediately.</Notice>
    );
  }
  return <Notice tone="good">Version {version} is installed.</Notice>;
}
