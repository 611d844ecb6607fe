/** The profile of a certificate. The profiles that the CA offers are loaded when the field gets the focus. */
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
  const loadOffer = async () => {
    if (offered !== undefined) return;
    try {
      const { profiles } = await post<IssuerOffer>(`/issuers/${encodeURIComponent(issuer)}/test`);
      setOffers((now) => ({ ...now, [issuer]: profiles.map(({ name }) => name) }));
    } catch {
      // The profiles stay unknown; the CA rejects an unknown one at the order.
    }
  };
  const isUnknown = value !== '' && offered !== undefined && !offered.includes(value);
  return (
    <TextField
      label="Profile"
      hint={hintOf(issuer, offered)}
      value={value}
      onFocus={() => void loadOffer()}
      error={error ?? (isUnknown ? `${issuer} offers no profile ${value}` : undefined)}
      onValue={(profile) => onValue(profile.trim())}
    />
  );
}

function hintOf(issuer: string, offered: readonly string[] | undefined): string {
  if (offered === undefined)
    return 'A certificate profile that the CA offers. Leave empty for the issuer’s default.';
  if (offered.length === 0) return `${issuer} offers no profiles. Leave this empty.`;
  return `${issuer} offers ${offered.join(', ')}. Leave empty for the issuer’s default.`;
}
