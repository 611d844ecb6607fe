/** Pure rules: which role and which name the claims of a person mean. */
import { type Role, roles } from '../../base/role.ts';
import { administratorName } from '../access/administrator-inputs.ts';
import type { ProviderSettings, RoleMapping } from './provider-settings.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** The texts of the claim that decides about the role. An unverified email address says nothing. */
export function roleValuesIn(claims: Claims, { claim }: Pick<RoleMapping, 'claim'>): readonly string[] {
  if (claim === 'email' && claims.email_verified !== true) return [];
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  const values = Array.isArray(value) ? value : [value];
  return values.filter((one) => typeof one === 'string');
}

/** The highest role that the claims grant; undefined for none. Values are compared exactly. */
export function roleIn(claims: Claims, mapping: RoleMapping): Role | undefined {
  const held = new Set(roleValuesIn(claims, mapping));
  const granted = roles.filter((role) => mapping.values[role].some((value) => held.has(value)));
  return granted.at(-1) ?? mapping.byDefault;
}

/**
 * The labels that the claims confine a person with this role to, sorted; none for everything, undefined if the person
 * is refused.
 */
export function reachIn(
  claims: Claims,
  { roles, reach = [] }: Pick<ProviderSettings, 'roles' | 'reach'>,
  role: Role,
): readonly string[] | undefined {
  if (role === 'admin') return [];
  return confinementIn(
    claims,
    roles,
    reach.map(({ value, label }) => [value, label]),
  );
}

/**
 * The profiles that the claims confine a person with this role to, sorted; none for any, undefined if the person is
 * refused.
 */
export function profilesIn(
  claims: Claims,
  { roles, profiles = [] }: Pick<ProviderSettings, 'roles' | 'profiles'>,
  role: Role,
): readonly string[] | undefined {
  if (role !== 'operator') return [];
  return confinementIn(
    claims,
    roles,
    profiles.map(({ value, profile }) => [value, profile]),
  );
}

/**
 * What is granted to the values in the claims, sorted; none if nothing confines anyone, or if a value is not confined
 * (undefined); undefined if nothing is granted.
 */
function confinementIn(
  claims: Claims,
  roles: RoleMapping,
  grants: readonly (readonly [value: string, granted: string | undefined])[],
): readonly string[] | undefined {
  if (grants.length === 0) return [];
  const held = new Set(roleValuesIn(claims, roles));
  const granted = grants.filter(([value]) => held.has(value)).map(([, one]) => one);
  if (granted.length === 0) return undefined;
  const confining = granted.filter((one) => one !== undefined);
  return confining.length < granted.length ? [] : [...new Set(confining)].sort();
}

/**
 * The name of a new account: the first of preferred_username, verified email address and subject that is valid as a
 * name; undefined if none is. It only names the person: subjects identify them.
 */
export function nameIn(claims: Claims): string | undefined {
  const { preferred_username: username, email, email_verified: isVerified, sub } = claims;
  const isUnverified = (name: unknown) => name === email && isVerified === false;
  return [...(isUnverified(username) ? [] : [username]), ...(isVerified === true ? [email] : []), sub]
    .map((name) => administratorName.safeParse(name))
    .find(({ success }) => success)?.data;
}

/**
 * Claims of the ID token, completed from the userinfo response. The response that has an address decides
 * whether it is verified.
 */
export function mergedClaims(idToken: Claims, userinfo: Claims): Claims {
  const merged = { ...userinfo, ...idToken };
  return merged.email === userinfo.email ? merged : { ...merged, email_verified: idToken.email_verified };
}
