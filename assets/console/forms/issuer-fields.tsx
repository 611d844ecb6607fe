/** The fields of an ACME CA: which one it is, and what only some of them want to know. */
import { useState } from 'preact/hooks';
import { TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { IssuerDraft } from '../issuer-draft.ts';

const known = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
  zerossl: 'https://acme.zerossl.com/v2/DV90',
  google: 'https://dv.acme-v02.api.pki.goog/directory',
} as const;

type IssuerFieldsProps = {
  readonly draft: IssuerDraft;
  readonly onChange: (changes: Partial<IssuerDraft>) => void;
  readonly errorOf: (field: string) => string | undefined;
};

/** Which CA a new issuer is. */
export function IssuerDirectory({ draft, onChange, errorOf }: IssuerFieldsProps) {
  const [choice, setChoice] = useState('');
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
              : { name, directory_url: known[name as keyof typeof known] },
          );
        }}
        choices={[
          { value: '', label: 'Another ACME CA' },
          { value: 'letsencrypt', label: 'Let’s Encrypt' },
          { value: 'letsencrypt-staging', label: 'Let’s Encrypt, staging (for tries)' },
          { value: 'zerossl', label: 'ZeroSSL' },
          { value: 'google', label: 'Google Trust Services' },
        ]}
      />
      <TextField
        label="Name"
        hint="What certificates call it."
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

/** What most CAs do without. */
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
      <summary>Profile, chain, external account, private CA</summary>
      <div class="stack">
        <TextField
          label="Profile"
          hint="A kind of certificate that the CA offers. Empty for its usual one."
          value={draft.profile}
          error={errorOf('profile')}
          onValue={(profile) => onChange({ profile })}
        />
        <TextField
          label="Preferred chain"
          hint="The common name of the root that the chain shall lead to. Empty for the CA’s own choice."
          value={draft.preferred_chain}
          error={errorOf('preferred_chain')}
          onValue={(preferred_chain) => onChange({ preferred_chain })}
        />
        <TextField
          label="External account: key id"
          hint="From the CA, where it takes orders of its customers only."
          value={draft.eab_kid}
          error={errorOf('eab_kid')}
          onValue={(eab_kid) => onChange({ eab_kid })}
        />
        <TextField
          label="External account: HMAC key"
          type="password"
          hint={isNew ? 'It is sealed, and never shown again.' : 'Empty to keep the one that is there.'}
          value={draft.eab_hmac_key}
          error={errorOf('eab_hmac_key')}
          onValue={(eab_hmac_key) => onChange({ eab_hmac_key })}
        />
        <TextArea
          label="Roots to trust for the CA’s HTTPS"
          hint="PEM, for a private ACME server. Empty for the public roots."
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
