/** The three rights an API key can carry (interface specification, "Scopes"). */

export const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'] as const;

export type Scope = (typeof scopes)[number];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}
