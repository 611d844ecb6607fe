/** Who makes a certificate, and how. What the chosen issuer does not know is not asked. */

import { keyTypes } from '../../../src/base/key-type.ts';
import type { Issuer } from '../administration-shapes.ts';
import { type CertificateDraft, isAddress, isWildcard } from '../certificate-checks.ts';
import { Checkbox, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
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

export function CertificateWishes({
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
      ...(willBeAcme ? { lifetime: '' } : { profile: '', challenge: '', fallbackIssuer: '' }),
      ...(willBeAcme && draft.keyType === 'ed25519' && { keyType: 'ec256' }),
    });
  };
  return (
    <fieldset class="card stack">
      <legend>By</legend>
      <Select
        label="Issuer"
        hint={
          isAcme ? undefined : 'The built-in CA makes it at once; clients trust it once they have its root.'
        }
        value={draft.issuer}
        onValue={choose}
        error={errorOf('issuer')}
        choices={issuers.map(({ name, type }) => ({
          value: name,
          label: type === 'acme' ? name : `${name} (built-in private CA)`,
        }))}
      />
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
      {isAcme ? (
        <AcmeWishes draft={draft} issuers={issuers} onChange={onChange} errorOf={errorOf} />
      ) : (
        <TextField
          label="Lifetime"
          hint="A number and h, d or y, such as 90d. Leave it empty for the CA's own."
          value={draft.lifetime}
          placeholder="90d"
          error={errorOf('lifetime')}
          onValue={(lifetime) => onChange({ lifetime: lifetime.trim() })}
        />
      )}
      <Checkbox
        label="Keep the key at renewals"
        hint="Only where the key is pinned somewhere; a new key each time is safer."
        isChecked={draft.reusesKey}
        onChecked={(reusesKey) => onChange({ reusesKey })}
      />
    </fieldset>
  );
}

function AcmeWishes({
  draft,
  issuers,
  onChange,
  errorOf,
}: PartProps & { readonly issuers: readonly Issuer[] }) {
  const others = issuers.filter(({ name }) => name !== draft.issuer);
  return (
    <>
      <Select
        label="Proof of control"
        hint={proofHint(draft)}
        value={draft.challenge}
        onValue={(challenge) => onChange({ challenge })}
        error={errorOf('challenge')}
        choices={proofs(draft)}
      />
      <ProfileField
        issuer={draft.issuer}
        value={draft.profile}
        error={errorOf('profile')}
        onValue={(profile) => onChange({ profile })}
      />
      {others.length > 0 && (
        <Select
          label="Fallback issuer"
          hint="Asked when this one fails."
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

function proofs({ domains }: CertificateDraft) {
  const onlyDns = domains.some(isWildcard);
  const onlyDirect = domains.some(isAddress);
  return [
    { value: '', label: 'What suits each name' },
    { value: 'http-01', label: 'HTTP on port 80 (http-01)', isDisabled: onlyDns },
    { value: 'tls-alpn-01', label: 'TLS on port 443 (tls-alpn-01)', isDisabled: onlyDns },
    { value: 'dns-01', label: 'A DNS record (dns-01)', isDisabled: onlyDirect },
    { value: 'dns-persist-01', label: 'A DNS record that stays (dns-persist-01)', isDisabled: onlyDirect },
  ];
}

function proofHint({ domains }: CertificateDraft): string | undefined {
  return domains.some(isWildcard) ? 'Wildcards are proved by a DNS record only.' : undefined;
}
