/** Access tokens that are fetched, used until shortly before they expire, and fetched again. */
import { minute } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';

export type IssuedToken = { readonly token: string; readonly lifetimeMs: number };

export type BearerToken = {
  /** The header that carries it. */
  readonly headers: (signal: AbortSignal) => Promise<{ readonly Authorization: string }>;
  /** The next request fetches a new one. */
  readonly forget: () => void;
};

/** Keeps one token. Requests that come while it is fetched may fetch one too; the last one stays. */
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
