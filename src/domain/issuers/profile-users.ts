/** API keys and administrators who are confined to profiles: these stay while they are. */
import type { Reader } from '../../db/database.ts';
import { listConfinedPeople } from '../../db/tables/access/administrators.ts';
import { listConfinedKeys } from '../../db/tables/access/api-keys.ts';

export type ConfinedUsers = {
  readonly kind: 'API keys' | 'administrators';
  /** As messages name them. */
  readonly names: string;
  readonly hint: string;
};

/** How many users a message names. */
const maxNamed = 5;

/**
 * Those who are confined to such a profile (`issuer/profile`), API keys first; undefined if there are none. Revoked
 * keys do not count, nor do people of an identity provider, whom its settings confine.
 */
export async function confinedUsers(
  reader: Reader,
  isMeant: (profile: string) => boolean,
): Promise<ConfinedUsers | undefined> {
  const isConfined = ({ profiles }: { readonly profiles: readonly string[] }) => profiles.some(isMeant);
  const keys = (await listConfinedKeys(reader)).filter(isConfined);
  if (keys.length > 0) {
    return {
      kind: 'API keys',
      names: listed(keys.map(({ id, name }) => `${id} (${name})`)),
      hint: 'Revoke these keys, or change their profiles with "vault api-key update --profile".',
    };
  }
  const people = (await listConfinedPeople(reader)).filter(isConfined);
  if (people.length === 0) return undefined;
  return {
    kind: 'administrators',
    names: listed(people.map(({ name }) => name)),
    hint: 'Change their profiles with "vault admin update --profile".',
  };
}

function listed(users: readonly string[]): string {
  return users.slice(0, maxNamed).join(', ') + (users.length > maxNamed ? ' …' : '');
}
