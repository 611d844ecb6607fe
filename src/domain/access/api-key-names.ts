/** API keys by name, for people: revoked and older keys may share a name, which is refused with their ids. */
import { Problem } from '../../base/problem.ts';
import { didYouMean } from '../closest-names.ts';
import type { ApiKeyView } from './api-key-views.ts';

/**
 * The id of the key in a list that `text` means: an id, or the name of exactly one key that is `revoked` or
 * `not revoked`. Throws `api_key_not_found`, or `invalid_request` with the candidates if several keys have the name.
 */
export async function apiKeyIdFrom(
  pages: AsyncIterable<readonly ApiKeyView[]>,
  text: string,
  which: 'revoked' | 'not revoked',
): Promise<number> {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  const names = new Set<string>();
  const same: ApiKeyView[] = [];
  for await (const page of pages) {
    for (const key of page) {
      names.add(key.name);
      if (key.name === text) same.push(key);
    }
  }
  const candidates = same.filter((key) => (key.revoked_at !== null) === (which === 'revoked'));
  const [only] = candidates.length === 0 ? same : candidates;
  if (only === undefined) {
    throw new Problem('api_key_not_found', {
      detail: `Unknown API key ${JSON.stringify(text)}.`,
      hint: didYouMean(text, [...names], 'Try: vault api-key list'),
    });
  }
  if (candidates.length <= 1) return only.id;
  throw new Problem('invalid_request', {
    detail: `${candidates.length} API keys have the name ${JSON.stringify(text)}.`,
    hint: `Use --id with one of: ${candidates.map(({ id, prefix }) => `${id} (${prefix}…)`).join(', ')}`,
  });
}
