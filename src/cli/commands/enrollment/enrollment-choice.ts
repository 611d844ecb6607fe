/** Enrollments of this machine's vault or of one at a server, with the API keys that they created. */
import { type ApiKeyView, pageOfApiKeys } from '../../../domain/access/api-key-views.ts';
import {
  allEnrollments,
  type EnrollmentView,
  enrollmentIdFrom,
} from '../../../domain/enrollments/enrollment-views.ts';
import { inPortions, unlimited } from '../../../domain/portions.ts';
import type { Vault } from '../../../domain/vault.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { onVault } from '../../runtime/with-vault.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { labelQuery } from '../label-options.ts';

/** A key as an enrollment lists it. */
type CreatedKey = Pick<
  ApiKeyView,
  'id' | 'name' | 'state' | 'created_at' | 'last_used_at' | 'last_used_ip' | 'allowed_networks'
>;

export type EnrollmentWithKeys = EnrollmentView & { readonly api_keys: readonly CreatedKey[] };

export const enrollmentOption = {
  id: {
    type: 'string',
    valueHint: 'ID',
    required: true,
    positional: 'or-flag',
    description: 'the id or the name of the enrollment',
  },
} as const;

/** All enrollments of a vault at a server, or those with these labels, page by page. */
export function enrollmentsThere(
  remote: RemoteVault,
  labels?: readonly string[],
): AsyncGenerator<readonly EnrollmentView[]> {
  return remote.pages<EnrollmentView>('/enrollments', { label: labelQuery(labels) });
}

/** Reads the keys of an enrollment. */
export type KeysOf = (enrollment: number) => Promise<readonly ApiKeyView[]>;

/** The keys of a vault on this machine. */
export function keysHere(vault: Vault): KeysOf {
  return async (enrollment) => {
    const pages = inPortions<ApiKeyView>(vault, unlimited, (limit, last) =>
      pageOfApiKeys(vault, { after: last?.id, limit, enrollment }),
    );
    return (await Array.fromAsync(pages)).flat();
  };
}

/** The keys of a vault at a server. */
export function keysThere(remote: RemoteVault): KeysOf {
  return (enrollment) => remote.list<ApiKeyView>('/api-keys', { enrollment: String(enrollment) });
}

/** Adds the keys to each page; reads none for an enrollment without a use. */
export async function* withKeys(
  pages: AsyncIterable<readonly EnrollmentView[]>,
  keysOf: KeysOf,
): AsyncGenerator<readonly EnrollmentWithKeys[]> {
  for await (const page of pages) {
    const full: EnrollmentWithKeys[] = [];
    for (const enrollment of page) {
      full.push(enrollment.uses === 0 ? { ...enrollment, api_keys: [] } : await addKeys(enrollment, keysOf));
    }
    yield full;
  }
}

/** Adds the keys to an enrollment. */
export async function addKeys(enrollment: EnrollmentView, keysOf: KeysOf): Promise<EnrollmentWithKeys> {
  return { ...enrollment, api_keys: (await keysOf(enrollment.id)).map(shown) };
}

function shown(key: ApiKeyView): CreatedKey {
  const { id, name, state, created_at, last_used_at, last_used_ip, allowed_networks } = key;
  return { id, name, state, created_at, last_used_at, last_used_ip, allowed_networks };
}

/** Works on the enrollment that the option means, and returns its id with the result. See `enrollmentIdFrom`. */
export function onEnrollment<T>(
  args: Parameters<typeof onVault>[0] & { readonly id: string },
  terminal: Terminal,
  which: 'active' | 'ended',
  here: (vault: Vault, id: number) => Promise<T>,
  there: (remote: RemoteVault, id: number) => Promise<T>,
): Promise<{ readonly id: number; readonly result: T }> {
  return onVault(
    args,
    terminal,
    'refuse',
    async (vault) => {
      const id = await enrollmentIdFrom(allEnrollments(vault), args.id, which);
      return { id, result: await here(vault, id) };
    },
    async (remote) => {
      const id = await enrollmentIdFrom(enrollmentsThere(remote), args.id, which);
      return { id, result: await there(remote, id) };
    },
  );
}
