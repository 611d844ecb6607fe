/** Tests an ACME CA: whether it is reachable and trusted, and what it offers. */
import { readDirectory } from '../../acme/directory.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { findAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import type { CaContext } from '../issuance-contexts.ts';
import { requireIssuer } from './issuers.ts';

export type IssuerOffer = {
  directory_url: string;
  profiles: { name: string; description: string }[];
  terms_of_service: string | null;
  external_account_required: boolean;
  renewal_information: boolean;
};

/** Fetches the directory of the issuer. Throws AcmeError, OperatorError and `invalid_request`. */
export async function askIssuer(vault: CaContext, name: string, signal: AbortSignal): Promise<IssuerOffer> {
  const issuer = await requireIssuer(vault.db.reader, name);
  const ca = await findAcmeIssuer(vault.db.reader, issuer.id);
  if (ca === undefined) throw new OperatorError(`issuer ${name} is not an ACME CA; there is nothing to test`);
  // The client may have a cached directory; a test must fetch it.
  const directory = readDirectory(await vault.acme.at(ca).get(ca.directory_url, signal));
  return {
    directory_url: ca.directory_url,
    profiles: Object.entries(directory.profiles).map(([profile, description]) => ({
      name: profile,
      description,
    })),
    terms_of_service: directory.termsOfService ?? null,
    external_account_required: directory.externalAccountRequired,
    renewal_information: directory.renewalInfo !== undefined,
  };
}
