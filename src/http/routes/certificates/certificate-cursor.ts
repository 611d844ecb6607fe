/** The cursor of certificate lists in `?after=`: the name, preceded by the sort value. */
import { Problem } from '../../../base/problem.ts';
import type {
  CertificateCursor,
  CertificateOnPage,
  certificateOrders,
} from '../../../domain/certificates/certificate-search.ts';

type Sorted = { readonly sort: (typeof certificateOrders)[number]; readonly after?: string | undefined };

/** The value of `?after=` that continues after the row. */
export function cursorOf({ sort }: Sorted, { name, sort_key }: CertificateOnPage): string {
  return sort === 'name' ? name : `${sort_key}:${name}`;
}

/** Parses `?after=`. Throws `invalid_request` if it does not match the requested sort order. */
export function cursorIn({ sort, after }: Sorted): CertificateCursor | undefined {
  if (after === undefined) return undefined;
  if (sort === 'name') return { name: after };
  const [, key, name] = /^(\d{1,16}):([^:]*)$/.exec(after) ?? [];
  if (key !== undefined && name !== undefined) return { key: Number(key), name };
  const message = 'must be the cursor from a Link header';
  throw new Problem('invalid_request', {
    detail: `after: ${message}.`,
    errors: [{ path: 'after', message }],
  });
}
