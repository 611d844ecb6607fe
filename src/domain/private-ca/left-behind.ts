/** Certificates whose renewals would fail after a change of their private CA. */
import { parseJson } from '../../base/json.ts';
import type { Reader } from '../../db/database.ts';
import { pageCertificatesOfIssuer } from '../../db/tables/certificates/certificates.ts';
import { leafSettings } from './leaf-settings.ts';
import type { CertifiedNames } from './permitted-names.ts';

/** How many certificates are read at once, and named in a message. */
const certificatesAtOnce = 500;
const maxNamed = 5;

export type LeftBehind = {
  /** Such as `web (www.example.com), db (db.example.com)`; undefined if there are none. */
  readonly shown: string | undefined;
  /** The last id that was checked. */
  readonly last: number;
};

/** Those with an id above `after` that a private CA renews and that have a name which `forbidden` returns. */
export async function leftBehind(
  reader: Reader,
  issuerId: number,
  forbidden: (names: CertifiedNames) => { readonly name: string } | undefined,
  after: number,
): Promise<LeftBehind> {
  const left: string[] = [];
  let last = after;
  for (;;) {
    const rows = await pageCertificatesOfIssuer(reader, issuerId, last, certificatesAtOnce);
    for (const row of rows) {
      const found = forbidden({ domains: parseJson(row.domains), ...leafSettings(row) });
      if (found !== undefined) left.push(`${row.name} (${found.name})`);
    }
    last = rows.at(-1)?.id ?? last;
    if (rows.length < certificatesAtOnce || left.length > maxNamed) break;
  }
  if (left.length === 0) return { shown: undefined, last };
  return { shown: left.slice(0, maxNamed).join(', ') + (left.length > maxNamed ? ' …' : ''), last };
}
