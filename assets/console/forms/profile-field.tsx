/** The profile of a certificate. The profiles that the issuer has are loaded when the field gets the focus. */
import { useState } from 'preact/hooks';
import { TextField } from '../components/field.tsx';
import type { IssuerOffer } from '../data/administration-shapes.ts';
import { getAll, post } from '../data/api.ts';
import { useSession } from '../data/session.ts';

type Offers = Readonly<Record<string, readonly string[]>>;

export function ProfileField({
  issuer,
  isAcme,
  value,
  error,
  onValue,
}: {
  readonly issuer: string;
  readonly isAcme: boolean;
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (profile: string) => void;
}) {
  const [offers, setOffers] = useState<Offers>({});
  const offered = offers[issuer];
  const loadOffer = async () => {
    if (offered !== undefined) return;
    try {
      const path = `/issuers/${encodeURIComponent(issuer)}`;
      const profiles = isAcme
        ? (await post<IssuerOffer>(`${path}/test`)).profiles
        : await getAll<{ readonly name: string }>(`${path}/profiles`);
      setOffers((now) => ({ ...now, [issuer]: profiles.map(({ name }) => name) }));
    } catch {
      // The profiles stay unknown; an unknown one is rejected later.
    }
  };
  const own = useSession()?.profiles ?? [];
  const isUnknown = value !== '' && offered !== undefined && !offered.includes(value);
  return (
    <TextField
      label="Profile"
      hint={own.length > 0 ? ownHint(own) : hintOf(issuer, isAcme, offered)}
      value={value}
      onFocus={() => void loadOffer()}
      error={error ?? (isUnknown ? `${issuer} offers no profile ${value}` : undefined)}
      onValue={(profile) => onValue(profile.trim())}
    />
  );
}

/** People who are confined to profiles cannot create a certificate without one of them. */
export function useOwnProfile(): { readonly issuer: string; readonly profile: string } | undefined {
  const [issuer, profile] = useSession()?.profiles[0]?.split('/') ?? [];
  return issuer === undefined || profile === undefined ? undefined : { issuer, profile };
}

function ownHint(own: readonly string[]): string {
  const [first = ''] = own;
  if (own.length === 1) return `You may use only the profile ${profileWithIssuer(first)}.`;
  return `You may use only one of these profiles: ${own.map(profileWithIssuer).join(', ')}.`;
}

function profileWithIssuer(reference: string): string {
  const [issuer, profile] = reference.split('/');
  return `${profile} of ${issuer}`;
}

function hintOf(issuer: string, isAcme: boolean, offered: readonly string[] | undefined): string {
  const empty = isAcme ? 'Leave empty for the issuer’s default.' : 'Leave empty for none.';
  if (offered === undefined) return `A certificate profile that the issuer offers. ${empty}`;
  if (offered.length === 0) return `${issuer} offers no profiles. Leave this empty.`;
  return `${issuer} offers ${offered.join(', ')}. ${empty}`;
}
