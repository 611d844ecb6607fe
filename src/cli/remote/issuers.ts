/** Issuers of a vault at a server: what its endpoints take and return, as the commands use it. */
import { notAcme } from '../../domain/issuers/issuer-changes.ts';
import type { IssuerView } from '../../domain/issuers/issuer-views.ts';
import { type IssuerSecrets, unknownIssuer } from '../../domain/issuers/issuers.ts';
import { inPath, type RemoteVault, slowRequest } from './remote-vault.ts';

/** All issuers by name. */
export function issuersThere(remote: RemoteVault): Promise<IssuerView[]> {
  return remote.list<IssuerView>('/issuers');
}

/** The path of an issuer, and of `more` below it. */
export function issuerPath(name: string, more = ''): string {
  return `/issuers/${inPath(name)}${more}`;
}

/** The issuer of this name. Throws `invalid_request` that suggests existing names. */
export async function issuerThere(remote: RemoteVault, name: string): Promise<IssuerView> {
  const issuers = await issuersThere(remote);
  const found = issuers.find((issuer) => issuer.name === name);
  if (found !== undefined) return found;
  throw unknownIssuer(
    name,
    issuers.map((issuer) => issuer.name),
  );
}

/** Adds an ACME CA after the server has read its directory. */
export async function addIssuerThere(
  remote: RemoteVault,
  wanted: object,
  secrets: IssuerSecrets,
): Promise<void> {
  await remote.send('POST', '/issuers', { ...wanted, ...secretMembers(secrets) }, slowRequest);
}

/** Changes an ACME CA after the server has read its directory. */
export async function updateIssuerThere(
  remote: RemoteVault,
  name: string,
  changes: object,
  secrets: IssuerSecrets,
): Promise<void> {
  if ((await issuerThere(remote, name)).type !== 'acme') throw notAcme(name);
  await remote.send('PATCH', issuerPath(name), { ...changes, ...secretMembers(secrets) }, slowRequest);
}

function secretMembers({ eabKey, ca, acceptsTerms }: IssuerSecrets) {
  return {
    ...(eabKey !== undefined && { eab_hmac_key: eabKey.expose().toString('base64url') }),
    ...(ca !== undefined && { ca_pem: ca }),
    accept_terms: acceptsTerms,
  };
}
