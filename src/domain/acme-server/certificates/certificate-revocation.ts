/**
 * Revokes certificates of ACME clients (RFC 8555 §7.6): requested by an account of the client that ordered one, or with
 * the key of the certificate, also after its client is gone.
 */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { AcmeError } from '../../../acme/acme-error.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { StorageError } from '../../../base/storage-error.ts';
import { certificateFacts } from '../../../crypto/x509/certificate-facts.ts';
import {
  type CertificateVersionRow,
  findVersion,
  listVersionsWithSerial,
} from '../../../db/tables/certificates/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../../db/tables/certificates/certificates.ts';
import type { IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import type { Actor } from '../../audit/audit.ts';
import { type RevocationReason, revocationReasons, revokeVersion } from '../../certificates/revocation.ts';
import type { DatabaseContext, LogContext, SecretsContext } from '../../contexts.ts';
import type { CaContext } from '../../issuance-contexts.ts';
import type { QueueContext } from '../../renewals/renewal-queue.ts';
import { type AcmeCaller, actorOf, type SignedRequest } from '../accounts/callers.ts';
import { findAcmeClient } from '../clients/client-access.ts';
import { type AccountKeys, readAccountKey } from '../protocol/account-keys.ts';
import { AcmeProblem, type AcmeProblemType, acmeProblemStatuses } from '../protocol/acme-problem.ts';
import { storeNonce, type UsedNonce } from '../protocol/nonces.ts';
import { fromBase64Url } from '../protocol/signed-messages.ts';

export const revocationInput = z.object({ certificate: z.string(), reason: z.int().default(0) });

type RevocationInput = z.infer<typeof revocationInput>;

type RevocationContext = SecretsContext & LogContext & QueueContext & CaContext;

/**
 * Revokes a certificate of the caller's client. Throws `unauthorized` for others, `alreadyRevoked` and
 * `badRevocationReason`.
 */
export async function revokeByAccount(
  vault: RevocationContext,
  { issuer, client, actor, nonce }: AcmeCaller,
  input: RevocationInput,
  signal: AbortSignal,
): Promise<void> {
  const reason = reasonOf(input);
  const found = await versionOf(vault, issuer, derOf(input));
  if (found?.certificate.acme_client_id !== client.id) throw notYours();
  await revoke(vault, { ...found, actor, nonce, reason }, signal);
}

/**
 * Revokes the certificate whose key signed the request. Throws like `revokeByAccount`, and what the signature is
 * refused for. `admit` throws if there were too many such requests for this version.
 */
export async function revokeByKey(
  vault: RevocationContext,
  keys: AccountKeys,
  request: SignedRequest,
  input: RevocationInput,
  admit: (certificateId: number, version: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const key = readAccountKey(request.message.header.jwk);
  await keys.requireSignature(request.message, key);
  const reason = reasonOf(input);
  const der = derOf(input);
  const found = await versionOf(vault, request.issuer, der);
  const owner = found?.certificate.acme_client_id ?? undefined;
  if (found === undefined || owner === undefined || thumbprintOf(der) !== key.thumbprint) throw notYours();
  // Only now: a stranger must not use up what is left to the holder of the key.
  admit(found.certificate.id, found.version.version);
  const { name = 'unknown' } = (await findAcmeClient(vault, owner)) ?? {};
  const actor = actorOf({ id: owner, name }, request);
  await revoke(vault, { ...found, actor, nonce: request.nonce, reason }, signal);
}

function reasonOf({ reason }: RevocationInput): RevocationReason {
  const known = Object.entries(revocationReasons);
  const found = known.find(([, code]) => code === reason)?.[0];
  if (found !== undefined) return found as RevocationReason;
  const list = known.map(([name, code]) => `${code} (${name})`).join(', ');
  throw new AcmeProblem('badRevocationReason', `The reason must be one of: ${list}.`);
}

function derOf({ certificate }: RevocationInput): Buffer {
  const der = fromBase64Url(certificate);
  try {
    if (der !== undefined) return new X509Certificate(der).raw;
  } catch {
    // Not a certificate.
  }
  throw new AcmeProblem('malformed', 'The certificate must be DER in base64url without padding.');
}

type FoundVersion = { readonly certificate: CertificateRow; readonly version: CertificateVersionRow };

/** The stored version that is this certificate, if this issuer issued it. */
async function versionOf(
  { db }: DatabaseContext,
  issuer: IssuerRow,
  der: Buffer,
): Promise<FoundVersion | undefined> {
  for (const version of await listVersionsWithSerial(db.reader, certificateFacts(der).serial)) {
    if (!new X509Certificate(version.certificate_pem).raw.equals(der)) continue;
    const certificate = await findCertificateById(db.reader, version.certificate_id);
    if (certificate?.issuer_id === issuer.id) return { certificate, version };
  }
  return undefined;
}

/** The thumbprint of the key in a certificate; undefined for a key that no request can be signed with. */
function thumbprintOf(der: Buffer): string | undefined {
  const { publicKey } = new X509Certificate(der);
  try {
    return readAccountKey(publicKey.export({ format: 'jwk' })).thumbprint;
  } catch (error) {
    if (error instanceof AcmeProblem) return undefined;
    throw error;
  }
}

type Revocation = FoundVersion & {
  readonly actor: Actor;
  readonly nonce: UsedNonce;
  readonly reason: RevocationReason;
};

async function revoke(vault: RevocationContext, revocation: Revocation, signal: AbortSignal): Promise<void> {
  const { certificate, version, actor, nonce, reason } = revocation;
  if (version.revoked_at !== null) throw alreadyRevoked();
  if (version.not_after <= vault.world.now()) {
    throw new AcmeProblem('malformed', 'The certificate has expired; there is nothing to revoke.');
  }
  // Ahead of the revocation, which may take a while at another CA.
  await vault.db.write((writer) => storeNonce(writer, nonce));
  const { db } = vault;
  try {
    await revokeVersion(vault, actor, certificate.name, { version: version.version, reason }, signal);
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof StorageError) throw error;
    const now = await findVersion(db.reader, certificate.id, version.version);
    // Another request may have revoked it meanwhile.
    if (now?.revoked_at != null) throw alreadyRevoked();
    throw notRevoked(error);
  }
}

/** The refusal of the CA that issued the certificate, in its words. */
function notRevoked(error: OperatorError): AcmeProblem {
  const detail = `The certificate was not revoked: ${error.message}.`;
  if (!(error instanceof AcmeError)) return new AcmeProblem('serverInternal', detail, { cause: error });
  const type = Object.hasOwn(acmeProblemStatuses, error.type)
    ? (error.type as AcmeProblemType)
    : 'serverInternal';
  const { retryAfterMs } = error;
  return new AcmeProblem(type, detail, { cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}

function notYours(): AcmeProblem {
  return new AcmeProblem(
    'unauthorized',
    'The request may not revoke this certificate: sign it with an account of the client that ordered it at this directory, or with the key of the certificate.',
  );
}

function alreadyRevoked(): AcmeProblem {
  return new AcmeProblem('alreadyRevoked', 'The certificate was already revoked.');
}
