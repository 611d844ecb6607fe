/** The requests that are measured, as clients of the vault send them, and what share of a bare server they are to reach. */
import type { FilledVault } from './filled-vault.ts';
import type { LoadRequest } from './load.ts';

export type RequestKind = {
  readonly name: string;
  readonly status: number;
  /** Of the requests per second that a bare server reaches. */
  readonly goal: number;
  /** Of `vault serve`, beside those that all kinds have. */
  readonly options?: readonly string[];
  /** The request with this key, for the certificate of this name; `index` counts them. */
  readonly request: (vault: FilledVault, key: string, name: string, index: number) => LoadRequest;
  /** How many requests there are to differ, where it matters. */
  readonly variety?: number;
};

const file = (name: string, file: string) => `/api/v1/certificates/${name}/${file}`;
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

/** Of the form of a key, and nobody's. */
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
    // One address would soon be answered 429, which costs less. More than the vault remembers never are.
    options: ['--trusted-proxies', '127.0.0.1'],
    variety: 20_000,
    request: (_, __, name, index) => ({
      path: file(name, 'fullchain.crt'),
      headers: { ...bearer(unknownKey), 'X-Forwarded-For': `10.1.${index >> 8}.${index & 255}` },
    }),
  },
];

/** Requests of a kind, `count` where it does not say how many, each with another key as long as there are some. */
export function requestsOf(kind: RequestKind, vault: FilledVault, count: number): LoadRequest[] {
  const { names, keys } = vault;
  const length = kind.variety ?? count;
  return Array.from({ length }, (_, index) => {
    const at = Math.floor((index * keys.length) / length) % keys.length;
    return kind.request(vault, keys[at] ?? '', names[at % names.length] ?? '', index);
  });
}
