/** API keys of a vault at a server: what its endpoints return, as the commands use it. */
import { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { apiKeyIdFrom } from '../../../domain/access/api-key-names.ts';
import type { Rotation } from '../../../domain/access/api-key-rotation.ts';
import type { ApiKeyView } from '../../../domain/access/api-key-views.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { labelQuery } from '../label-options.ts';

type CreatedKey = ApiKeyView & { readonly key: string };

/** The raw key of a response, which has it once. */
export function rawOf({ key }: Pick<CreatedKey, 'key'>): { readonly raw: Secret<string> } {
  return { raw: new Secret(key) };
}

/** The expiry as the API takes it: the command line also takes durations and days. */
export function expiryOf({ expires_at }: { readonly expires_at?: number | null | undefined }): {
  readonly expires_at?: string | null;
} {
  if (expires_at === undefined) return {};
  return { expires_at: expires_at === null ? null : formatTimestamp(expires_at) };
}

/** All keys, or those with these labels, page by page. */
export function keysThere(
  remote: RemoteVault,
  labels?: readonly string[],
): AsyncGenerator<readonly ApiKeyView[]> {
  return remote.pages<ApiKeyView>('/api-keys', { label: labelQuery(labels) });
}

/** Rotates the key that `text` means. */
export async function rotateThere(
  remote: RemoteVault,
  text: string,
  overlap: string | undefined,
): Promise<Rotation> {
  const id = await apiKeyIdFrom(keysThere(remote), text, 'not revoked');
  const before = (await Array.fromAsync(keysThere(remote))).flat().find((key) => key.id === id);
  const made = await remote.send<CreatedKey>('POST', `/api-keys/${id}/rotate`, { overlap });
  const endedEarlier = (before?.previous_expires_at ?? null) !== null;
  return { name: made.name, ...rawOf(made), previousExpiresAt: made.previous_expires_at, endedEarlier };
}

/** Changes the key that `text` means; says whether any setting has another value now. */
export async function updateThere(
  remote: RemoteVault,
  text: string,
  changes: object,
): Promise<{ readonly id: number; readonly isChanged: boolean }> {
  const id = await apiKeyIdFrom(keysThere(remote), text, 'not revoked');
  const before = (await Array.fromAsync(keysThere(remote))).flat().find((key) => key.id === id);
  const after = await remote.send<ApiKeyView>('PATCH', `/api-keys/${id}`, changes);
  return { id, isChanged: JSON.stringify(settingsOf(before)) !== JSON.stringify(settingsOf(after)) };
}

/** Without what changes as the key is used. */
function settingsOf(key: ApiKeyView | undefined): Partial<ApiKeyView> {
  const { last_used_at: _, last_used_ip: __, ...settings } = key ?? ({} as ApiKeyView);
  return settings;
}
