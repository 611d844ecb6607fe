/** How a machine authenticates the vault, from its first request on. */

import { ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { Select } from '../components/select.tsx';
import type { OwnTls } from '../data/administration-shapes.ts';
import { useResource } from '../data/resource.ts';
import type { Settings } from '../data/shapes.ts';
import type { InstallerErrors } from './installer-checks.ts';
import type { InstallerChoices, Trust } from './shell-command.ts';

/** The default for the vault's own HTTPS certificate; the machine's trusted roots if it is unknown. */
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
        label="Verify the vault with"
        value={choices.trust}
        onValue={(trust) => onChange({ trust: trust as Trust })}
        choices={[
          { value: 'public', label: 'The machine’s trusted roots' },
          { value: 'pin', label: 'The vault’s public key (pin)' },
          { value: 'ca-file', label: 'A root certificate file on the machine' },
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
            {tls && !tls.publicly_trusted && 'Machines do not trust the CA of this vault’s own certificate. '}
            The command accepts only this public key, from its first request on.
          </p>
          {tls?.certificate && tls.pin === choices.pin && <PinWarning certificate={tls.certificate} />}
        </>
      )}
      {choices.trust === 'ca-file' && (
        <TextField
          label="Root certificate"
          hint="A PEM file that you copied to the machine over a trusted channel. The installer keeps its own copy."
          placeholder="/etc/ssl/vault-ca.pem"
          value={choices.caFile}
          error={errors.caFile}
          onValue={(caFile) => onChange({ caFile })}
        />
      )}
      {choices.trust === 'public' && tls && !tls.publicly_trusted && (
        <Notice tone="warning">
          Machines reject this vault unless its private CA is among their trusted roots.
        </Notice>
      )}
    </>
  );
}

/** Warns that a pin stops working if the vault's own certificate gets a new key at renewal. */
function PinWarning({ certificate }: { readonly certificate: string }) {
  const path = `/certificates/${encodeURIComponent(certificate)}`;
  const { data } = useResource<Settings>(`${path}/settings`);
  if (data === undefined || data.issuer === null) return null;
  const next = data.next_public_key_pin;
  if (data.reuse_key && next === null) return null;
  return (
    <Notice
      tone="warning"
      title={`${certificate} gets a new key at its next renewal`}
      actions={<ButtonLink href={path}>View {certificate}</ButtonLink>}
    >
      Machines that pinned only the current key stop updating then.{' '}
      {next === null ? (
        'Edit the certificate to keep its private key at each renewal.'
      ) : (
        <>
          The next pin is <span class="mono">{next}</span>.
        </>
      )}
    </Notice>
  );
}
