/** An ACME CA as its form holds it, and what of that the API is told. */
import type { Issuer } from './administration-shapes.ts';

export const blankIssuer = {
  name: '',
  directory_url: '',
  email: '',
  profile: '',
  preferred_chain: '',
  eab_kid: '',
  eab_hmac_key: '',
  ca_pem: '',
};

export type IssuerDraft = typeof blankIssuer;

/** What can be taken back: the form says so by an empty field. */
const optional: readonly string[] = ['email', 'profile', 'preferred_chain', 'ca_pem'];

export function issuerDraft(issuer: Issuer): IssuerDraft {
  const { name, directory_url, email, profile, preferred_chain, eab_kid, ca_pem } = issuer;
  const text = (value: string | null) => value ?? '';
  return {
    name,
    directory_url: text(directory_url),
    email: text(email),
    profile: text(profile),
    preferred_chain: text(preferred_chain),
    eab_kid: text(eab_kid),
    eab_hmac_key: '',
    ca_pem: text(ca_pem),
  };
}

/** The body of POST: what is empty is left to the vault. */
export function newIssuer(draft: IssuerDraft): Record<string, string> {
  return Object.fromEntries(entriesOf(draft).filter(([, value]) => value !== ''));
}

/** The body of PATCH: what is unchanged stays, and what was emptied is taken back where that is possible. */
export function issuerChanges(before: IssuerDraft, draft: IssuerDraft): Record<string, string | null> {
  const was = Object.fromEntries(entriesOf(before));
  const changed = entriesOf(draft).filter(([name, value]) => value !== was[name]);
  const sent = changed.filter(([name, value]) => value !== '' || optional.includes(name));
  return Object.fromEntries(sent.map(([name, value]) => [name, value === '' ? null : value]));
}

function entriesOf(draft: IssuerDraft): [string, string][] {
  return Object.entries(draft).map(([name, value]) => [name, value.trim()]);
}
