/** The profile of a certificate: what the CA offers is asked for when somebody turns to the field. */
import { useState } from 'preact/hooks';
import type { IssuerOffer } from '../administration-shapes.ts';
import { post } from '../api.ts';
import { TextField } from '../components/field.tsx';

type Offers = Readonly<Record<string, readonly string[]>>;

export function ProfileField({
  issuer,
  value,
  error,
  onValue,
}: {
  readonly issuer: string;
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (profile: string) => void;
}) {
  const [offers, setOffers] = useState<Offers>({});
  const offered = offers[issuer];
  const ask = async () => {
    if (offered !== undefined) return;
    try {
      const { profiles } = await post<IssuerOffer>(`/issuers/${encodeURIComponent(issuer)}/test`);
      setOffers((now) => ({ ...now, [issuer]: profiles.map(({ name }) => name) }));
    } catch {
      // Then nobody knows here; the order will tell.
    }
  };
  const isUnknown = value !== '' && offered !== undefined && !offered.includes(value);
  return (
    <TextField
      label="Profile"
      hint={hintOf(issuer, offered)}
      value={value}
      onFocus={() => void ask()}
      error={error ?? (isUnknown ? `${issuer} offers no profile ${value}` : undefined)}
      onValue={(profile) => onValue(profile.trim())}
    />
  );
}

function hintOf(issuer: string, offered: readonly string[] | undefined): string {
  if (offered === undefined) return 'A kind of certificate that the CA offers. Empty for the issuer’s own.';
  if (offered.length === 0) return `${issuer} has one kind of certificates: leave it empty.`;
  return `${issuer} offers ${offered.join(', ')}. Empty for the issuer’s own.`;
}
