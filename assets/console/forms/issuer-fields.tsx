/** The form fields of an ACME CA. */
import { useState } from 'preact/hooks';
import { TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { IssuerDraft } from './issuer-draft.ts';

/** The directories of CAs by the names that their issuers get. */
export const knownDirectories = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
  zerossl: 'https://acme.zerossl.com/v2/DV90',
  google: 'https://dv.acme-v02.api.pki.goog/directory',
} as const;

type KnownName = keyof typeof knownDirectories;

type IssuerFieldsProps = {
  readonly draft: IssuerDraft;
  readonly onChange: (changes: Partial<IssuerDraft>) => void;
  readonly errorOf: (field: string) => string | undefined;
};

/** Selects the CA of a new issuer. */
export function IssuerDirectory({ draft, onChange, errorOf }: IssuerFieldsProps) {
  const [choice, setChoice] = useState(draft.name);
  return (
    <>
      <Select
        label="CA"
        value={choice}
        onValue={(name) => {
          setChoice(name);
          onChange(
            name === ''
              ? { name: '', directory_url: '' }
              : { name, directory_url: knownDirectories[name as KnownName] },
          );
        }}
        choices={[
          { value: '', label: 'Other ACME CA' },
          { value: 'letsencrypt', label: 'Let’s Encrypt' },
          { value: 'letsencrypt-staging', label: 'Let’s Encrypt staging (for tests)' },
          { value: 'zerossl', label: 'ZeroSSL' },
          { value: 'google', label: 'Google Trust Services' },
        ]}
      />
      <TextField
        label="Name"
        hint="Certificates refer to the issuer by this name."
        value={draft.name}
        error={errorOf('name')}
        onValue={(name) => onChange({ name })}
      />
      <TextField
        label="Directory"
        type="url"
        placeholder="https://ca.example/acme/directory"
        value={draft.directory_url}
        error={errorOf('directory_url')}
        onValue={(directory_url) => onChange({ directory_url })}
      />
    </>
  );
}

/** Options that most CAs do not need. */
export function IssuerOptions({
  draft,
  onChange,
  errorOf,
  isNew,
}: IssuerFieldsProps & { readonly isNew: boolean }) {
  const hasError = ['profile', 'preferred_chain', 'eab_kid', 'eab_hmac_key', 'ca_pem'].some(
    (field) => errorOf(field) !== undefined,
  );
  return (
    <details class="more-options" open={hasError || !isNew}>
      <summary>Profile, chain, external account, trusted roots</summary>
      <div class="stack">
        <TextField
          label="Profile"
          hint="A certificate profile that the CA offers. Leave empty for the CA’s default."
          value={draft.profile}
          error={errorOf('profile')}
          onValue={(profile) => onChange({ profile })}
        />
        <TextField
          label="Preferred chain"
          hint="Common name of the root at the end of the chain. Leave empty for the CA’s default."
          value={draft.preferred_chain}
          error={errorOf('preferred_chain')}
          onValue={(preferred_chain) => onChange({ preferred_chain })}
        />
        <TextField
          label="External account: key ID"
          hint="Get this from the CA if it requires external account binding (EAB)."
          value={draft.eab_kid}
          error={errorOf('eab_kid')}
          onValue={(eab_kid) => onChange({ eab_kid })}
        />
        <TextField
          label="External account: HMAC key"
          type="password"
          hint={isNew ? 'Stored encrypted and never shown again.' : 'Leave empty to keep the current key.'}
          value={draft.eab_hmac_key}
          error={errorOf('eab_hmac_key')}
          onValue={(eab_hmac_key) => onChange({ eab_hmac_key })}
        />
        <TextArea
          label="Trusted roots for the CA’s HTTPS"
          hint="PEM, for a private ACME server. Leave empty for the public roots."
          isCode
          placeholder="-----BEGIN CERTIFICATE-----"
          value={draft.ca_pem}
          error={errorOf('ca_pem')}
          onValue={(ca_pem) => onChange({ ca_pem })}
        />
      </div>
    </details>
  );
}
