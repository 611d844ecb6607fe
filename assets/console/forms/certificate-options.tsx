/** The issuer of a new certificate and its options. Shows only the options that the selected issuer supports. */

import { keyTypes } from '../../../src/base/key-type.ts';
import { type CertificateDraft, isAddress, isWildcard } from '../certificates/certificate-checks.ts';
import { Checkbox, TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import type { Issuer } from '../data/administration-shapes.ts';
import type { PartProps } from './certificate-names.tsx';
import { ProfileField } from './profile-field.tsx';

export const keyTypeNames: Readonly<Record<string, string>> = {
  ec256: 'ECDSA P-256 (ec256)',
  ec384: 'ECDSA P-384 (ec384)',
  rsa2048: 'RSA 2048 (rsa2048)',
  rsa3072: 'RSA 3072 (rsa3072)',
  rsa4096: 'RSA 4096 (rsa4096)',
  ed25519: 'Ed25519 (ed25519)',
};

export function CertificateOptions({
  draft,
  issuers,
  isAcme,
  onChange,
  errorOf,
}: PartProps & { readonly issuers: readonly Issuer[]; readonly isAcme: boolean }) {
  const choose = (issuer: string) => {
    const willBeAcme = issuers.find(({ name }) => name === issuer)?.type === 'acme';
    onChange({
      issuer,
      ...(draft.fallbackIssuer === issuer && { fallbackIssuer: '' }),
      ...(willBeAcme ? { lifetime: '', usage: '' } : { challenge: '', fallbackIssuer: '' }),
      // Each issuer has its own profiles.
      profile: '',
      ...(willBeAcme && draft.keyType === 'ed25519' && { keyType: 'ec256' }),
    });
  };
  return (
    <fieldset class="card stack">
      <legend>Issuance</legend>
      <Select
        label="Issuer"
        hint={
          isAcme ? undefined : 'The private CA issues immediately. Clients must trust its root certificate.'
        }
        value={draft.issuer}
        onValue={choose}
        error={errorOf('issuer')}
        choices={issuers.map(({ name, type }) => ({
          value: name,
          label: type === 'acme' ? name : `${name} (${name === 'local-ca' ? 'built-in ' : ''}private CA)`,
        }))}
      />
      {draft.csr === '' && (
        <Select
          label="Key type"
          value={draft.keyType}
          onValue={(keyType) => onChange({ keyType })}
          error={errorOf('key_type')}
          choices={keyTypes.map((type) => ({
            value: type,
            label: keyTypeNames[type] ?? type,
            isDisabled: isAcme && type === 'ed25519',
          }))}
        />
      )}
      {isAcme ? (
        <AcmeOptions draft={draft} issuers={issuers} onChange={onChange} errorOf={errorOf} />
      ) : (
        <PrivateOptions draft={draft} onChange={onChange} errorOf={errorOf} />
      )}
      {draft.csr === '' && (
        <Checkbox
          label="Keep the private key at each renewal"
          hint="Only if clients pin the key. A new key at each renewal is safer."
          isChecked={draft.reusesKey}
          onChecked={(reusesKey) => onChange({ reusesKey })}
        />
      )}
      <TextArea
        label="CSR (optional)"
        hint="A certificate signing request in PEM. The client keeps the private key, and the names come from the request."
        rows={4}
        isCode
        value={draft.csr}
        error={errorOf('csr')}
        onValue={(csr) => onChange({ csr: csr.trim() })}
      />
    </fieldset>
  );
}

function PrivateOptions({ draft, onChange, errorOf }: PartProps) {
  return (
    <>
      <Select
        label="Usage"
        value={draft.usage}
        onValue={(usage) => onChange({ usage: usage as CertificateDraft['usage'] })}
        error={errorOf('usage')}
        choices={[
          { value: '', label: 'Servers and clients' },
          { value: 'server', label: 'Servers only' },
          { value: 'client', label: 'Clients only' },
        ]}
      />
      <TextField
        label="Lifetime"
        hint="A number and h, d or y, such as 90d. Leave empty for the CA’s default."
        value={draft.lifetime}
        placeholder="90d"
        error={errorOf('lifetime')}
        onValue={(lifetime) => onChange({ lifetime: lifetime.trim() })}
      />
      <ProfileField
        issuer={draft.issuer}
        isAcme={false}
        value={draft.profile}
        error={errorOf('profile')}
        onValue={(profile) => onChange({ profile })}
      />
    </>
  );
}

function AcmeOptions({
  draft,
  issuers,
  onChange,
  errorOf,
}: PartProps & { readonly issuers: readonly Issuer[] }) {
  const others = issuers.filter(({ name }) => name !== draft.issuer);
  return (
    <>
      <Select
        label="Challenge"
        hint={challengeHint(draft)}
        value={draft.challenge}
        onValue={(challenge) => onChange({ challenge })}
        error={errorOf('challenge')}
        choices={challenges(draft)}
      />
      <ProfileField
        issuer={draft.issuer}
        isAcme
        value={draft.profile}
        error={errorOf('profile')}
        onValue={(profile) => onChange({ profile })}
      />
      {others.length > 0 && (
        <Select
          label="Fallback issuer"
          hint="Used after repeated failures of the issuer."
          value={draft.fallbackIssuer}
          onValue={(fallbackIssuer) => onChange({ fallbackIssuer })}
          error={errorOf('fallback_issuer')}
          choices={[
            { value: '', label: 'None' },
            ...others.map(({ name }) => ({ value: name, label: name })),
          ]}
        />
      )}
    </>
  );
}

function challenges({ domains }: CertificateDraft) {
  const onlyDns = domains.some(isWildcard);
  const onlyDirect = domains.some(isAddress);
  return [
    { value: '', label: 'Automatic' },
    { value: 'http-01', label: 'HTTP on port 80 (http-01)', isDisabled: onlyDns },
    { value: 'tls-alpn-01', label: 'TLS on port 443 (tls-alpn-01)', isDisabled: onlyDns },
    { value: 'dns-01', label: 'DNS record (dns-01)', isDisabled: onlyDirect },
    { value: 'dns-persist-01', label: 'Permanent DNS record (dns-persist-01)', isDisabled: onlyDirect },
  ];
}

function challengeHint({ domains }: CertificateDraft): string | undefined {
  return domains.some(isWildcard) ? 'CAs validate wildcards only through DNS records.' : undefined;
}
