/**
 * The CA certificates that the vault announces to TLS clients when it requests a certificate. Browsers offer their user
 * the certificates of these CAs and show no dialog if there are none; so only the private CAs are announced that issue
 * what some API key is bound to.
 */
import { listBindingIssuers } from '../../db/tables/access/client-certificates.ts';
import { listIntermediates } from '../../db/tables/issuance/ca-certificates.ts';
import type { TimedContext } from '../contexts.ts';
import { pemOf, trustedRoots } from '../private-ca/ca-chains.ts';

/** Their roots and intermediates, each as PEM; empty if no key that is not revoked is bound to a certificate. */
export async function announcedAuthorities({ db, world }: TimedContext): Promise<string[]> {
  const now = world.now();
  const announced: string[] = [];
  for (const issuerId of await listBindingIssuers(db.reader)) {
    for (const root of await trustedRoots(db.reader, issuerId, now)) {
      const intermediates = await listIntermediates(db.reader, root);
      const valid = intermediates.filter(({ not_after }) => not_after > now);
      announced.push(pemOf([root]), ...valid.map((row) => pemOf([row])));
    }
  }
  return announced;
}
