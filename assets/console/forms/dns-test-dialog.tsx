/** Tests a DNS provider: the vault creates, checks and removes a record, and the dialog shows each step. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { useFormErrors } from '../components/form-errors.tsx';
import { Notice } from '../components/notice.tsx';
import { Spinner } from '../components/spinner.tsx';
import { StepList } from '../components/step-list.tsx';
import type { DnsProvider, Step } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import { useAction } from '../data/resource.ts';

export function DnsTestDialog({
  provider: { name, zones },
  onClose,
}: {
  readonly provider: DnsProvider;
  readonly onClose: () => void;
}) {
  const [domain, setDomain] = useState(zones[0] ?? '');
  const [steps, setSteps] = useState<readonly Step[]>();
  const { run, isBusy, error } = useAction(async () => {
    setSteps(undefined);
    const result = await post<{ readonly steps: readonly Step[] }>(
      `/dns-providers/${encodeURIComponent(name)}/test`,
      { domain },
    );
    setSteps(result.steps);
  });
  const { form, errorOf, rest } = useFormErrors(error);
  return (
    <Dialog title={`Test ${name}`} onClose={onClose}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Domain"
          hint="The vault creates a challenge record for this domain, waits until it is visible in DNS, and removes it."
          value={domain}
          error={errorOf('domain')}
          onValue={setDomain}
        />
        {isBusy && <Spinner label="Creating the record and waiting for DNS; this can take two minutes" />}
        {rest}
        {steps && (
          <Notice tone="good" title={`${name} can validate ${domain}`}>
            <StepList steps={steps} />
          </Notice>
        )}
        <div class="dialog-buttons">
          <Button look="quiet" onClick={onClose}>
            Close
          </Button>
          <Button look="primary" type="submit" isBusy={isBusy}>
            Test
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
