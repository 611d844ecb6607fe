/** What people and API keys may administer: each role includes those before it. */

export const roles = ['viewer', 'operator', 'admin'] as const;

export type Role = (typeof roles)[number];

/** Whether someone with `role` may do what `needed` may. */
export function includesRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}
