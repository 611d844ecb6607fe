/** The measured requests, as clients of the vault send them, and their goal as a share of the bare server's rate. */
import type { FilledVault } from './filled-vault.ts';
import type { LoadRequest } from './load.ts';

export type RequestKind = {
  readonly name: string;
  readonly status: number;
  /** The goal, as a share of the bare server's requests per second. */
  readonly goal: number;
  /** Extra options of `vault serve`. */
  readonly options?: readonly string[];
  /** The request with this key for this certificate; `index` counts the requests. */
  readonly request: (vault: FilledVault, key: string, name: string, index: number) => LoadRequest;
  /** The number of different requests, if it matters. */
  readonly variety?: number;
};

const file = (name: string, file: string) => `/api/v1/certificates/${name}/${file}`;
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

/** A well-formed key that does not exist. */
const unknownKey = `vk_${'x'.repeat(12)}.${'x'.repeat(43)}`;

export const requestKinds: readonly RequestKind[] = [
  {
    name: 'full chain, 304',
    status: 304,
    goal: 0.6,
    request: ({ etags }, key, name) => ({
      path: file(name, 'fullchain.crt'),
      headers: { ...bearer(key), 'If-None-Match': etags.fullchain },
    }),
  },
  {
    name: 'full chain, 200',
    status: 200,
    goal: 0.48,
    request: (_, key, name) => ({ path: file(name, 'fullchain.crt'), headers: bearer(key) }),
  },
  {
    name: 'private key, 200',
    status: 200,
    goal: 0.4,
    request: (_, key, name) => ({ path: file(name, 'private.key'), headers: bearer(key) }),
  },
  {
    name: 'metadata, 200',
    status: 200,
    goal: 0.45,
    request: (_, key, name) => ({ path: `/api/v1/certificates/${name}`, headers: bearer(key) }),
  },
  {
    name: 'unknown key, 401',
    status: 401,
    goal: 0.6,
    // A single address would soon get 429, which costs less, so use more addresses than the vault tracks.
    options: ['--trusted-proxies', '127.0.0.1'],
    variety: 20_000,
    request: (_, __, name, index) => ({
      path: file(name, 'fullchain.crt'),
      headers: { ...bearer(unknownKey), 'X-Forwarded-For': `10.1.${index >> 8}.${index & 255}` },
    }),
  },
];

/** The kind with this name. */
export function requestKind(name: string): RequestKind {
  const kind = requestKinds.find((each) => each.name === name);
  if (kind === undefined) throw new Error(`unknown kind of request: ${name}`);
  return kind;
}

/** The requests of a kind, by default `count`, each with a different key if there are enough keys. */
export function requestsOf(kind: RequestKind, vault: FilledVault, count: number): LoadRequest[] {
  const { names, keys } = vault;
  const length = kind.variety ?? count;
  return Array.from({ length }, (_, index) => {
    const at = Math.floor((index * keys.length) / length) % keys.length;
    return kind.request(vault, keys[at] ?? '', names[at % names.length] ?? '', index);
  });
}
