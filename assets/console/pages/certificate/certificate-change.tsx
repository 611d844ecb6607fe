/** Edits the settings of a certificate. Changing its domains or key type renews it immediately. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../../components/dialog.tsx';
import { Checkbox, TextArea } from '../../components/field.tsx';
import { Select } from '../../components/select.tsx';
import { patch } from '../../data/api.ts';
import { useList } from '../../data/resource.ts';
import { useRefusal } from '../../data/session.ts';
import type { Settings } from '../../data/shapes.ts';
import { LabelsField } from '../../forms/labels-field.tsx';
import { ProfileField } from '../../forms/profile-field.tsx';
import { labelsIn } from '../../text/label-list.ts';

const keyTypes = ['ec256', 'ec384', 'rsa2048', 'rsa3072', 'rsa4096', 'ed25519'];
const challenges = ['http-01', 'tls-alpn-01', 'dns-01', 'dns-persist-01'];

type Draft = {
  domains: string;
  issuer: string;
  fallback_issuer: string;
  key_type: string;
  csr: string;
  challenge: string;
  profile: string;
  labels: string;
  reuse_key: boolean;
  rotate_key: boolean;
  auto_renew: boolean;
};

export function ChangeDialog({
  settings,
  onClose,
  onChanged,
}: {
  readonly settings: Settings;
  readonly onClose: () => void;
  readonly onChanged: () => Promise<void>;
}) {
  const issuers = useList<{ readonly name: string; readonly type: string }>('/issuers');
  const [before] = useState(() => draftOf(settings));
  const [draft, setDraft] = useState(before);
  const set = (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change }));
  const names = (issuers.data ?? []).map(({ name }) => ({ value: name, label: name }));
  const own = names.some(({ value }) => value === draft.issuer)
    ? []
    : [{ value: draft.issuer, label: draft.issuer }];
  const changes = changesOf(before, draft);
  const renews = 'domains' in changes || 'key_type' in changes || 'csr' in changes;
  const isHeldByClient = settings.csr !== null;
  const refusal = useRefusal('admin');
  return (
    <FormDialog
      title={`Edit ${settings.name}`}
      action={renews ? 'Save and renew' : 'Save'}
      isReady={Object.keys(changes).length > 0}
      onClose={onClose}
      onSubmit={async () => {
        await patch(`/certificates/${encodeURIComponent(settings.name)}`, changes);
        await onChanged();
      }}
    >
      {(errorOf) => (
        <>
          <TextArea
            label="Domains"
            hint="One per line."
            rows={3}
            isCode
            value={draft.domains}
            onValue={(domains) => set({ domains })}
            error={errorOf('domains')}
          />
          {isHeldByClient ? (
            <TextArea
              label="CSR"
              hint="The client holds the private key. Paste another request to change the key."
              rows={6}
              isCode
              value={draft.csr}
              onValue={(csr) => set({ csr })}
              error={errorOf('csr')}
            />
          ) : (
            <Select
              label="Key type"
              value={draft.key_type}
              onValue={(key_type) => set({ key_type })}
              choices={keyTypes.map((value) => ({ value, label: value }))}
              error={errorOf('key_type')}
            />
          )}
          <Select
            label="Issuer"
            value={draft.issuer}
            onValue={(issuer) => set({ issuer })}
            choices={[...own, ...names]}
            error={errorOf('issuer')}
          />
          <Select
            label="Fallback issuer"
            hint="Used after repeated failures of the issuer."
            value={draft.fallback_issuer}
            onValue={(fallback_issuer) => set({ fallback_issuer })}
            choices={[{ value: '', label: 'None' }, ...names.filter(({ value }) => value !== draft.issuer)]}
            error={errorOf('fallback_issuer')}
          />
          <Select
            label="Challenge"
            value={draft.challenge}
            onValue={(challenge) => set({ challenge })}
            choices={[
              { value: '', label: 'Automatic' },
              ...challenges.map((value) => ({ value, label: value })),
            ]}
            error={errorOf('challenge')}
          />
          <ProfileField
            issuer={draft.issuer}
            isAcme={(issuers.data ?? []).find(({ name }) => name === draft.issuer)?.type === 'acme'}
            value={draft.profile}
            error={errorOf('profile')}
            onValue={(profile) => set({ profile })}
          />
          <LabelsField
            hint="Such as team=web, separated by commas. API keys and people get access by them."
            value={draft.labels}
            error={errorOf('labels')}
            refusal={refusal}
            onValue={(labels) => set({ labels })}
          />
          <Checkbox
            label="Renew automatically"
            isChecked={draft.auto_renew}
            onChecked={(auto_renew) => set({ auto_renew })}
          />
          {!isHeldByClient && (
            <>
              <Checkbox
                label="Keep the private key at each renewal"
                isChecked={draft.reuse_key}
                onChecked={(reuse_key) => set({ reuse_key })}
              />
              <Checkbox
                label="Rotate the private key at the next renewal"
                isChecked={draft.rotate_key}
                onChecked={(rotate_key) => set({ rotate_key })}
              />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}

function draftOf(settings: Settings): Draft {
  const { key_type, reuse_key, auto_renew } = settings;
  return {
    ...{ key_type, reuse_key, auto_renew },
    rotate_key: settings.next_public_key_pin !== null,
    domains: settings.domains.join('\n'),
    csr: settings.csr ?? '',
    issuer: settings.issuer ?? '',
    fallback_issuer: settings.fallback_issuer ?? '',
    challenge: settings.challenge ?? '',
    profile: settings.profile ?? '',
    labels: settings.labels.join(', '),
  };
}

/** The fields that differ. An emptied field is sent as null, which resets the setting. */
function changesOf(before: Draft, draft: Draft): Record<string, unknown> {
  const changed = Object.entries(draft).filter(([name, value]) => before[name as keyof Draft] !== value);
  return Object.fromEntries(
    changed.map(([name, value]) => {
      if (name === 'domains')
        return [
          name,
          String(value)
            .split(/[\s,]+/)
            .filter(Boolean),
        ];
      if (name === 'labels') return [name, labelsIn(String(value))];
      return [name, value === '' ? null : value];
    }),
  );
}
