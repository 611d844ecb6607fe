/** Private CAs of a vault at a server: what its endpoints take and return, as the commands use it. */
import { OperatorError } from '../../../base/operator-error.ts';
import { parseTimestamp } from '../../../base/timestamp.ts';
import { refuseUnfitFile } from '../../../crypto/bundles/returned-authority.ts';
import type { PendingCaRequest } from '../../../domain/private-ca/ca-requests.ts';
import { issuerPath, issuersThere } from '../../remote/issuers.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';

/** The path of a private CA, and of `more` below it. Throws OperatorError if there is no private CA of this name. */
export async function caPath(remote: RemoteVault, name: string, more = ''): Promise<string> {
  const found = (await issuersThere(remote)).find((issuer) => issuer.name === name);
  if (found === undefined || found.type === 'acme') throw noPrivateCa(name);
  return issuerPath(name, `/ca${more}`);
}

/** There is no private CA of this name. */
export function noPrivateCa(name: string): OperatorError {
  return new OperatorError(`no private CA named ${name}`, { hint: 'Try: vault issuer list' });
}

/** What a rotation changed; times are UTC milliseconds. */
export type Rotation = {
  readonly formerUntil: number;
  readonly queued: number;
  readonly isTight: boolean;
};

/** Replaces the root of a private CA. */
export async function rotateThere(remote: RemoteVault, name: string): Promise<Rotation> {
  const rotation = await remote.send<{
    readonly former_root_until: string;
    readonly is_tight: boolean;
    readonly renewals: number;
  }>('POST', await caPath(remote, name, '/rotate'));
  return {
    formerUntil: milliseconds(rotation.former_root_until),
    queued: rotation.renewals,
    isTight: rotation.is_tight,
  };
}

/** The request for an intermediate that is pending, or with `replace` another one. */
export async function requestThere(
  remote: RemoteVault,
  name: string,
  { replace }: { readonly replace: boolean },
): Promise<PendingCaRequest> {
  const { csr, created_at, is_new } = await remote.send<{
    readonly csr: string;
    readonly created_at: string;
    readonly is_new: boolean;
  }>('POST', await caPath(remote, name, '/csr'), { new: replace });
  return { csr, createdAt: milliseconds(created_at), isNew: is_new };
}

/** What an import changed; times are UTC milliseconds, and `formerUntil` is undefined if the root is the same. */
export type Imported = {
  readonly root: string;
  readonly notAfter: number;
  readonly formerUntil: number | undefined;
  readonly queued: number;
};

/** Imports what a company's CA returned. A file that is not certificates alone is not sent. */
export async function importThere(
  remote: RemoteVault,
  name: string,
  file: Buffer,
  { force }: { readonly force: boolean },
): Promise<Imported> {
  const path = await caPath(remote, name, '/import');
  refuseUnfitFile(file);
  const imported = await remote.send<{
    readonly root: string;
    readonly issues_until: string;
    readonly former_root_until: string | null;
    readonly renewals: number;
  }>('POST', path, { chain: file.toString('utf8'), force });
  const { former_root_until: until } = imported;
  return {
    root: imported.root,
    notAfter: milliseconds(imported.issues_until),
    formerUntil: until === null ? undefined : milliseconds(until),
    queued: imported.renewals,
  };
}

function milliseconds(time: string): number {
  return parseTimestamp(time) ?? 0;
}
