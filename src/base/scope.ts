/** The rights an API key can carry: those of the interface specification, "Scopes", and signing CSRs. */

export const scopes = [
  'certificates:read',
  'private_keys:read',
  'renewals:trigger',
  'certificates:sign',
] as const;

export type Scope = (typeof scopes)[number];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}
