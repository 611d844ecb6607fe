/** Endpoints of a test's vault, and servers that present its certificates. */
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { checkEndpoint } from '../../../src/domain/endpoints/endpoint-checking.ts';
import { createEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import {
  type EndpointView,
  endpointView,
  requireEndpoint,
  withState,
} from '../../../src/domain/endpoints/endpoints.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { openVersionKey, requireVersion } from '../../../src/domain/versions/versions.ts';
import type { Identity } from './tls-servers.ts';

/** The current version of a certificate, for a TLS server; without `chain` only the leaf. */
export async function identityIn(vault: Vault, name: string, { chain = true } = {}): Promise<Identity> {
  const { reader } = vault.db;
  const row = await requireVersion(reader, await requireCertificate(reader, name), undefined);
  const key = openVersionKey(vault, row).expose().toString();
  return { key, cert: row.certificate_pem + (chain ? row.chain_pem : '') };
}

/** Adds an endpoint on loopback, or at `address`. Returns its id. */
export function endpointAt(vault: Vault, port: number, others: object = {}): Promise<number> {
  const input = { address: `127.0.0.1:${port}`, ...others };
  return addEndpoint(vault, localCli, parseInput(createEndpointInput, input));
}

/** Checks the endpoint now. */
export async function checked(
  vault: Vault,
  id: number,
  { signal } = new AbortController(),
): Promise<EndpointView> {
  return endpointView(await checkEndpoint(vault, id, signal), vault.world.now());
}

/** The endpoint as it is stored. */
export async function stored(vault: Vault, id: number): Promise<EndpointView> {
  const now = vault.world.now();
  return endpointView(withState(await requireEndpoint(vault.db.reader, id), now), now);
}
