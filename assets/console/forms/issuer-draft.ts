/** The state of the form for an ACME CA, and the request bodies that it produces. */
import type { Issuer } from '../data/administration-shapes.ts';

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

/** Fields that can be cleared by emptying them. */
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

/** The body of POST. Empty fields are left out. */
export function newIssuer(draft: IssuerDraft): Record<string, string> {
  return Object.fromEntries(entriesOf(draft).filter(([, value]) => value !== ''));
}

/** The body of PATCH: only changed fields, with null for optional ones that were emptied. */
export function issuerChanges(before: IssuerDraft, draft: IssuerDraft): Record<string, string | null> {
  const was = Object.fromEntries(entriesOf(before));
  const changed = entriesOf(draft).filter(([name, value]) => value !== was[name]);
  const sent = changed.filter(([name, value]) => value !== '' || optional.includes(name));
  return Object.fromEntries(sent.map(([name, value]) => [name, value === '' ? null : value]));
}

function entriesOf(draft: IssuerDraft): [string, string][] {
  return Object.entries(draft).map(([name, value]) => [name, value.trim()]);
}
