/** Access tokens that are requested, used until shortly before they expire, and requested again. */
import { minute } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';

export type IssuedToken = { readonly token: string; readonly lifetimeMs: number };

export type BearerToken = {
  /** The Authorization header with the token. */
  readonly headers: (signal: AbortSignal) => Promise<{ readonly Authorization: string }>;
  /** Makes the next request obtain a new token. */
  readonly forget: () => void;
};

/** Caches one token. Concurrent requests may each obtain a token; the last one is kept. */
export function bearerToken(
  world: World,
  fetchToken: (signal: AbortSignal) => Promise<IssuedToken>,
): BearerToken {
  let kept: { readonly token: Secret<string>; readonly until: number } | undefined;
  return {
    headers: async (signal) => {
      if (kept === undefined || kept.until <= world.now()) {
        const { token, lifetimeMs } = await fetchToken(signal);
        kept = { token: new Secret(token), until: world.now() + lifetimeMs - minute };
      }
      return { Authorization: `Bearer ${kept.token.expose()}` };
    },
    forget: () => {
      kept = undefined;
    },
  };
}
