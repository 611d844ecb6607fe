/** Adds an ACME CA, or changes one. The CA's terms are shown as soon as its directory has been asked for them. */
import { useState } from 'preact/hooks';
import type { Issuer } from '../administration-shapes.ts';
import { ApiError, patch, post } from '../api.ts';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';

const known = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
  zerossl: 'https://acme.zerossl.com/v2/DV90',
  google: 'https://dv.acme-v02.api.pki.goog/directory',
} as const;

const blank = {
  name: '',
  directory_url: '',
  email: '',
  profile: '',
  eab_kid: '',
  eab_hmac_key: '',
  ca_pem: '',
};

type Draft = typeof blank;

export function IssuerDialog({
  issuer,
  onClose,
  onDone,
}: {
  /** The one to change; none to add one. */
  readonly issuer?: Issuer;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const before = issuer === undefined ? blank : draftOf(issuer);
  const [draft, setDraft] = useState<Draft>(before);
  const [terms, setTerms] = useState<string>();
  const [accepts, setAccepts] = useState(false);
  const change = (changes: Partial<Draft>) => setDraft((now) => ({ ...now, ...changes }));
  const submit = async () => {
    // What is empty is left to the vault; what is unchanged stays.
    const filled = Object.entries(draft).filter(
      ([name, value]) =>
        value.trim() !== '' && (issuer === undefined || value !== before[name as keyof Draft]),
    );
    const body = { ...Object.fromEntries(filled), accept_terms: accepts };
    try {
      if (issuer === undefined) await post('/issuers', body);
      else await patch(`/issuers/${encodeURIComponent(issuer.name)}`, body);
    } catch (error) {
      const found = error instanceof ApiError ? error.field('accept_terms') : undefined;
      if (found === undefined) throw error;
      setTerms(found);
      throw new ApiError(400, 'terms', 'The CA wants its terms of service to be accepted first.');
    }
    await onDone();
  };
  return (
    <FormDialog
      title={issuer === undefined ? 'Add an ACME CA' : `Change ${issuer.name}`}
      action={issuer === undefined ? (terms !== undefined && !accepts ? 'Accept and add' : 'Add') : 'Save'}
      isReady={terms === undefined || accepts}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errorOf) => (
        <>
          {issuer === undefined && <Directory draft={draft} onChange={change} errorOf={errorOf} />}
          {issuer !== undefined && (
            <TextField
              label="Directory"
              type="url"
              hint="Another directory means another account."
              value={draft.directory_url}
              error={errorOf('directory_url')}
              onValue={(directory_url) => change({ directory_url })}
            />
          )}
          <TextField
            label="Email"
            type="email"
            hint="For the CA, where it has something to say. Optional."
            value={draft.email}
            error={errorOf('email')}
            onValue={(email) => change({ email })}
          />
          <MoreOptions draft={draft} onChange={change} errorOf={errorOf} isNew={issuer === undefined} />
          {terms !== undefined && (
            <Notice title="The CA has terms of service">
              <p>
                <a href={terms} target="_blank" rel="noreferrer">
                  {terms}
                </a>
              </p>
              <Checkbox label="I have read and accept them" isChecked={accepts} onChecked={setAccepts} />
            </Notice>
          )}
        </>
      )}
    </FormDialog>
  );
}

type PartProps = {
  readonly draft: Draft;
  readonly onChange: (changes: Partial<Draft>) => void;
  readonly errorOf: (field: string) => string | undefined;
};

function Directory({ draft, onChange, errorOf }: PartProps) {
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
        spellcheck={false}
        autocomplete="off"
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

function MoreOptions({ draft, onChange, errorOf, isNew }: PartProps & { readonly isNew: boolean }) {
  const hasError = ['profile', 'eab_kid', 'eab_hmac_key', 'ca_pem'].some(
    (field) => errorOf(field) !== undefined,
  );
  return (
    <details class="more-options" open={hasError || !isNew}>
      <summary>Profile, external account, private CA</summary>
      <div class="stack">
        <TextField
          label="Profile"
          hint="A kind of certificate that the CA offers. Empty for its usual one."
          value={draft.profile}
          error={errorOf('profile')}
          onValue={(profile) => onChange({ profile })}
        />
        <TextField
          label="External account: key id"
          hint="From the CA, where it takes orders of its customers only."
          value={draft.eab_kid}
          autocomplete="off"
          error={errorOf('eab_kid')}
          onValue={(eab_kid) => onChange({ eab_kid })}
        />
        <TextField
          label="External account: HMAC key"
          type="password"
          hint={isNew ? 'It is sealed, and never shown again.' : 'Empty to keep the one that is there.'}
          value={draft.eab_hmac_key}
          autocomplete="off"
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

function draftOf({ name, directory_url, email, profile, eab_kid, ca_pem }: Issuer): Draft {
  const text = (value: string | null) => value ?? '';
  return {
    name,
    directory_url: text(directory_url),
    email: text(email),
    profile: text(profile),
    eab_kid: text(eab_kid),
    eab_hmac_key: '',
    ca_pem: text(ca_pem),
  };
}
