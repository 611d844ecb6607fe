/** What an ACME CA offers, asked for now: whether it can be reached and trusted at all, and its profiles. */
import { readDirectory } from '../../acme/directory.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { findAcmeIssuer } from '../../db/tables/issuers.ts';
import type { CaContext } from './issuance-contexts.ts';
import { requireIssuer } from './issuers.ts';

export type IssuerOffer = {
  directory_url: string;
  profiles: { name: string; description: string }[];
  terms_of_service: string | null;
  external_account_required: boolean;
  renewal_information: boolean;
};

/** The directory of the issuer as it is now. Throws AcmeError, OperatorError and `invalid_request`. */
export async function askIssuer(vault: CaContext, name: string, signal: AbortSignal): Promise<IssuerOffer> {
  const issuer = await requireIssuer(vault.db.reader, name);
  const ca = await findAcmeIssuer(vault.db.reader, issuer.id);
  if (ca === undefined) throw new OperatorError(`${name} is not an ACME CA and needs no test`);
  // The client may know a directory of an hour ago; a test is about now.
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
