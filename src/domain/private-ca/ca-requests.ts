/** Asks the CA of a company for an intermediate: a new key, which stays pending in the vault, and the CSR for it. */
import { createPublicKey } from 'node:crypto';
import { generatePrivateKey, publicKeyOf } from '../../crypto/key-pair.ts';
import { encodePem } from '../../crypto/pem.ts';
import { publicKeyPin } from '../../crypto/public-key-pin.ts';
import { authorityRequest } from '../../crypto/x509/authority-request.ts';
import { type CaRequestRow, findCaRequest, putCaRequest } from '../../db/tables/issuance/ca-requests.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { requestedAuthorityKeyOwner, sealFor } from '../sealed-secrets.ts';
import { intermediateName } from './authorities.ts';
import { settingsOfCa } from './ca-settings.ts';
import type { PrivateCa } from './rotation.ts';

export type PendingCaRequest = {
  /** PKCS#10 as PEM. */
  readonly csr: string;
  /** UTC milliseconds. */
  readonly createdAt: number;
  /** Whether this call generated the key. */
  readonly isNew: boolean;
};

export type CaRequestOptions = {
  /** Whether a request that is pending is replaced, after which its certificate cannot be imported. */
  readonly replace: boolean;
};

/** The request of a private CA that is pending, or a new one. */
export async function requestAuthority(
  vault: SecretsContext,
  actor: Actor,
  ca: PrivateCa,
  { replace }: CaRequestOptions,
): Promise<PendingCaRequest> {
  const { db, world } = vault;
  const pending = replace ? undefined : await findCaRequest(db.reader, ca.id);
  if (pending !== undefined) return { ...view(pending), isNew: false };
  const settings = await settingsOfCa(db.reader, ca.id);
  const privateKey = await generatePrivateKey('ec384');
  const csr = await authorityRequest({
    commonName: intermediateName(vault, settings),
    privateKey,
    pathLength: settings.pathLength - 1,
  });
  const publicKey = createPublicKey({ key: publicKeyOf(privateKey), format: 'der', type: 'spki' });
  const detail = { public_key_pin: publicKeyPin({ publicKey }) };
  return db.write(async (writer) => {
    // Another process created one meanwhile.
    const other = replace ? undefined : await findCaRequest(writer, ca.id);
    if (other !== undefined) return { ...view(other), isNew: false };
    const sealed = await sealFor(vault, writer, requestedAuthorityKeyOwner(ca.id), privateKey);
    const row = { issuer_id: ca.id, csr, sealed_private_key: sealed, created_at: world.now() };
    await putCaRequest(writer, row);
    record(
      writer,
      { actor, action: 'issuer.ca_request', resource: `issuer:${ca.name}`, detail },
      world.now(),
    );
    return { ...view(row), isNew: true };
  });
}

function view({ csr, created_at: createdAt }: CaRequestRow): Omit<PendingCaRequest, 'isNew'> {
  return { csr: encodePem('CERTIFICATE REQUEST', csr), createdAt };
}
