/** Adds a DNS provider. Its type determines the settings and credentials. */
import { useState } from 'preact/hooks';
import { domainsIn } from '../certificates/certificate-checks.ts';
import { FormDialog } from '../components/dialog.tsx';
import { TextArea } from '../components/field.tsx';
import { post } from '../data/api.ts';
import { KindName, KindProblem, KindSelect, KindSettings, useKindDraft } from './kind-draft.tsx';

export function DnsProviderDialog({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const draft = useKindDraft('/dns-provider-types', 'config');
  const [zones, setZones] = useState('');
  const { type, name, isKnown, isCommandLineOnly } = draft;
  const submit = async () => {
    await post('/dns-providers', { name, type, zones: domainsIn(zones), config: draft.values() });
    await onDone();
  };
  return (
    <FormDialog
      title="Add DNS provider"
      action="Add"
      isReady={isKnown && !isCommandLineOnly}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          <KindProblem draft={draft} />
          <KindSelect
            draft={draft}
            errorOf={errorOf}
            plural="Providers"
            command="vault dns-provider add --type"
          />
          {isKnown && !isCommandLineOnly && (
            <>
              <KindName draft={draft} errorOf={errorOf} />
              <TextArea
                label="Zones"
                hint="The zones that this provider manages, one per line, such as example.com."
                rows={2}
                value={zones}
                error={errorOf('zones')}
                onValue={setZones}
              />
              <KindSettings draft={draft} errorOf={errorOf} />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
