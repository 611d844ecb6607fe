/** How a machine knows that it speaks to the vault and to nobody else, from the very first request on. */
import type { OwnTls } from '../administration-shapes.ts';
import { ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import type { InstallerErrors } from '../installer-checks.ts';
import { useResource } from '../resource.ts';
import type { Settings } from '../shapes.ts';
import type { InstallerChoices, Trust } from '../shell-command.ts';

/** What fits the vault's own HTTPS; where nobody knows it, the machine's own roots decide. */
export function trustFor(tls: OwnTls | null | undefined): Pick<InstallerChoices, 'trust' | 'pin'> {
  return tls && !tls.publicly_trusted
    ? { trust: 'pin', pin: tls.pin }
    : { trust: 'public', pin: tls?.pin ?? '' };
}

export function InstallerTrust({
  tls,
  choices,
  errors,
  onChange,
}: {
  readonly tls: OwnTls | null | undefined;
  readonly choices: InstallerChoices;
  readonly errors: InstallerErrors;
  readonly onChange: (changes: Partial<InstallerChoices>) => void;
}) {
  return (
    <>
      <Select
        label="How the machine knows the vault"
        value={choices.trust}
        onValue={(trust) => onChange({ trust: trust as Trust })}
        choices={[
          { value: 'public', label: 'By the roots that it trusts anyway' },
          { value: 'pin', label: 'By the vault’s public key (pin)' },
          { value: 'ca-file', label: 'By a root certificate that is on it' },
        ]}
      />
      {choices.trust === 'pin' && (
        <>
          <TextField
            label="Pin"
            hint="The SHA-256 hash of the vault’s public key."
            value={choices.pin}
            error={errors.pin}
            onValue={(pin) => onChange({ pin: pin.trim() })}
          />
          <p class="quiet">
            {tls && !tls.publicly_trusted && 'Machines do not know the CA of this vault’s own certificate. '}
            The command believes this public key and nothing else, from its first request on.
          </p>
          {tls?.certificate && tls.pin === choices.pin && <PinLasts certificate={tls.certificate} />}
        </>
      )}
      {choices.trust === 'ca-file' && (
        <TextField
          label="Root certificate"
          hint="A PEM file on the machine, brought there by a way that you trust. The job keeps a copy."
          placeholder="/etc/ssl/vault-ca.pem"
          value={choices.caFile}
          error={errors.caFile}
          onValue={(caFile) => onChange({ caFile })}
        />
      )}
      {choices.trust === 'public' && tls && !tls.publicly_trusted && (
        <Notice tone="warning">
          Machines refuse this vault unless its private CA is among the roots of their system.
        </Notice>
      )}
    </>
  );
}

/** A pin is good for one key: whoever pins must keep it. */
function PinLasts({ certificate }: { readonly certificate: string }) {
  const path = `/certificates/${encodeURIComponent(certificate)}`;
  const { data } = useResource<Settings>(`${path}/settings`);
  if (data === undefined || data.reuse_key || data.issuer === null) return null;
  return (
    <Notice
      tone="warning"
      title={`${certificate} gets another key at its next renewal`}
      actions={<ButtonLink href={path}>Change {certificate}</ButtonLink>}
    >
      Machines that pinned this one stop fetching then. Let the vault’s own certificate keep its private key.
    </Notice>
  );
}
