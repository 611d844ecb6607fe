/** Adds a private CA with a root of its own, or changes what one permits and its defaults. */

import { useState } from 'preact/hooks';
import { keyTypes } from '../../../src/base/key-type.ts';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { Issuer } from '../data/administration-shapes.ts';
import { patch, post } from '../data/api.ts';
import { keyTypeNames } from './certificate-options.tsx';
import {
  blankPrivateCa,
  newPrivateCa,
  type PrivateCaDraft,
  privateCaChanges,
  privateCaDraft,
} from './private-ca-draft.ts';

type PartProps = {
  readonly draft: PrivateCaDraft;
  readonly onChange: (changes: Partial<PrivateCaDraft>) => void;
  readonly errorOf: (field: string) => string | undefined;
};

export function PrivateCaDialog({
  issuer,
  onClose,
  onDone,
}: {
  /** The private CA to edit; undefined to add one. */
  readonly issuer?: Issuer;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [before] = useState(() => (issuer === undefined ? blankPrivateCa : privateCaDraft(issuer)));
  const [draft, setDraft] = useState(before);
  const change = (changes: Partial<PrivateCaDraft>) => setDraft((now) => ({ ...now, ...changes }));
  const submit = async () => {
    if (issuer === undefined) await post('/issuers', newPrivateCa(draft));
    else await patch(`/issuers/${encodeURIComponent(issuer.name)}`, privateCaChanges(before, draft));
    await onDone();
  };
  return (
    <FormDialog
      title={issuer === undefined ? 'Add private CA' : `Edit ${issuer.name}`}
      action={issuer === undefined ? 'Add' : 'Save'}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          {issuer === undefined && (
            <TextField
              label="Name"
              hint="Certificates refer to the CA by this name. You cannot change it later."
              placeholder="staging-ca"
              value={draft.name}
              error={errorOf('name')}
              onValue={(name) => change({ name })}
            />
          )}
          <PermittedNames draft={draft} onChange={change} errorOf={errorOf} />
          {issuer !== undefined && (
            <Checkbox
              label="Let renewals of certificates with other names fail"
              hint="Otherwise the vault refuses a change that excludes names of a certificate that this CA renews."
              isChecked={draft.isForced}
              onChecked={(isForced) => change({ isForced })}
            />
          )}
          <Defaults draft={draft} onChange={change} errorOf={errorOf} />
          {issuer === undefined && <RootOptions draft={draft} onChange={change} errorOf={errorOf} />}
        </>
      )}
    </FormDialog>
  );
}

function PermittedNames({ draft, onChange, errorOf }: PartProps) {
  return (
    <>
      <TextArea
        label="Permitted domains"
        hint="One per line, each with all names below it. Leave domains and networks empty to permit any name."
        rows={3}
        placeholder="staging.example"
        value={draft.domains}
        error={errorOf('permit_domains')}
        onValue={(domains) => onChange({ domains })}
      />
      <TextArea
        label="Permitted networks"
        hint="One per line. A CA with domains and no network issues for no IP address, and the reverse."
        rows={2}
        placeholder="10.0.0.0/8"
        value={draft.networks}
        error={errorOf('permit_ips')}
        onValue={(networks) => onChange({ networks })}
      />
    </>
  );
}

/** For certificates that are created without these settings. */
function Defaults({ draft, onChange, errorOf }: PartProps) {
  return (
    <>
      <TextField
        label="Default lifetime"
        hint="A number and m, h, d or y. Leave empty for 90 days."
        placeholder="90d"
        value={draft.lifetime}
        error={errorOf('lifetime')}
        onValue={(lifetime) => onChange({ lifetime })}
      />
      <Select
        label="Default key type"
        value={draft.keyType === '' ? 'ec256' : draft.keyType}
        onValue={(keyType) => onChange({ keyType })}
        error={errorOf('key_type')}
        choices={keyTypes.map((type) => ({ value: type, label: keyTypeNames[type] ?? type }))}
      />
    </>
  );
}

function RootOptions({ draft, onChange, errorOf }: PartProps) {
  const hasError = ['common_name', 'path_length'].some((field) => errorOf(field) !== undefined);
  return (
    <details class="more-options" open={hasError}>
      <summary>Root certificate</summary>
      <div class="stack">
        <TextField
          label="Common name"
          hint="Of the root, up to 40 characters. Leave empty for a name with random digits."
          value={draft.commonName}
          error={errorOf('common_name')}
          onValue={(commonName) => onChange({ commonName })}
        />
        <Select
          label="Path length"
          hint="How many CAs may follow the root in a chain. The vault needs one, for its intermediates."
          value={draft.pathLength === '' ? '1' : draft.pathLength}
          onValue={(pathLength) => onChange({ pathLength })}
          error={errorOf('path_length')}
          choices={['1', '2', '3', '4', '5'].map((value) => ({ value, label: value }))}
        />
      </div>
    </details>
  );
}
