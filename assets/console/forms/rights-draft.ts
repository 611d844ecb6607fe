/** The rights of an administrator as the form holds them, and as the vault takes them. */
import type { Role } from '../../../src/base/role.ts';
import type { Administrator } from '../data/administration-shapes.ts';
import { labelsIn } from '../text/label-list.ts';

/** Lists are texts with commas. */
export type RightsDraft = { readonly role: Role; readonly reach: string; readonly profiles: string };

export const blankRights: RightsDraft = { role: 'admin', reach: '', profiles: '' };

/** The rights that an administrator has. */
export function rightsDraft({
  role,
  reach,
  profiles,
}: Pick<Administrator, 'role' | 'reach' | 'profiles'>): RightsDraft {
  return { role, reach: reach.join(', '), profiles: profiles.join(', ') };
}

/** What the vault takes: the role admin has no reach, and only the role operator has profiles. */
export function rightsBody({ role, reach, profiles }: RightsDraft) {
  return {
    role,
    reach: role === 'admin' ? [] : labelsIn(reach),
    profiles: role === 'operator' ? profilesIn(profiles) : [],
  };
}

/** Profiles such as `local-ca/web` as people type them: separated by commas or spaces. */
export function profilesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
