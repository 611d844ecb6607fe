/**
 * Certificates whose private key the client holds: they are issued for its certificate signing request (CSR), again and
 * again, until it sends another one. What a CSR determines cannot be set beside it.
 */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { defaultKeyType, isKeyType, type KeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import { readSigningRequest, type SigningRequest } from '../../crypto/x509/signing-request.ts';
import type { Reader, Writer } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import type { NewCertificate, UpdateCertificateInput } from '../inputs.ts';
import { servingServers } from '../instance/served-settings.ts';
import { sentence } from '../issuers/issuers.ts';
import { isRevokedKey, revokedKey } from '../renewals/renewal-key.ts';

/** A certificate to create, with the names and the type of key that it will have. */
export type CompleteCertificate = Omit<NewCertificate, 'key_type'> & {
  readonly key_type: string;
  /** Undefined if the vault generates the key. */
  readonly request: SigningRequest | undefined;
};

const lists = ['domains', 'uris', 'emails'] as const;

/**
 * The certificate with what its CSR determines, or with the usual type of key. Throws `invalid_request` if its other
 * settings contradict the CSR: each list of names that is given must be that of the CSR, in any order.
 */
export function completeCertificate(input: NewCertificate, usual: KeyType): CompleteCertificate {
  if (input.csr === undefined) return { ...input, key_type: input.key_type ?? usual, request: undefined };
  if (input.key_type !== undefined) throw notApplicable('key_type');
  if (input.reuse_key) throw notApplicable('reuse_key');
  const request = readSigningRequest(input.csr);
  const { domains, uris, emails } = request;
  refuseOtherNames(request, {
    domains: input.domains.length > 0 ? input.domains : domains,
    uris: input.uris ?? uris,
    emails: input.emails ?? emails,
  });
  return {
    ...input,
    domains: input.domains.length > 0 ? input.domains : [...domains],
    ...(uris.length > 0 && { uris: input.uris ?? [...uris] }),
    ...(emails.length > 0 && { emails: input.emails ?? [...emails] }),
    key_type: request.keyType,
    request,
  };
}

/** The type of key of the next versions of a certificate whose CSR is removed. */
export function ownKeyType(before: string, wanted: KeyType | undefined): KeyType {
  return wanted ?? (isKeyType(before) ? before : defaultKeyType);
}

/** Throws `invalid_request` for changes that the CSR of a certificate, which stays or is new, does not permit. */
export function refuseContradictions(before: CertificateRow, input: UpdateCertificateInput): void {
  const isHeldByClient = input.csr === undefined ? before.csr !== null : input.csr !== null;
  if (!isHeldByClient) return;
  if (input.key_type !== undefined) throw notApplicable('key_type');
  if (input.reuse_key === true) throw notApplicable('reuse_key');
  if (input.rotate_key === true) throw notApplicable('rotate_key');
}

/** Throws `invalid_request` unless the names of the certificate are those of the CSR. */
export function refuseOtherNamesThanRequest(
  row: Pick<CertificateRow, (typeof lists)[number]>,
  request: SigningRequest,
): void {
  refuseOtherNames(request, {
    domains: parseJson(row.domains),
    uris: parseJsonOr(row.uris, []),
    emails: parseJsonOr(row.emails, []),
  });
}

function refuseOtherNames(
  request: SigningRequest,
  names: Readonly<Record<(typeof lists)[number], readonly string[]>>,
): void {
  for (const list of lists) {
    const asked: readonly string[] = request[list];
    const missing = names[list].filter((name) => !asked.includes(name));
    const extra = asked.filter((name) => !names[list].includes(name));
    if (missing.length + extra.length === 0) continue;
    const parts = [
      ...(extra.length > 0 ? [`only the CSR has ${shown(extra)}`] : []),
      ...(missing.length > 0 ? [`the CSR lacks ${shown(missing)}`] : []),
    ];
    throw new Problem('invalid_request', {
      detail: `The ${list} of the CSR are not those of the certificate: ${parts.join(', and ')}.`,
      hint: 'Create a CSR with the names of the certificate, or change the names together with the CSR.',
      errors: [{ path: 'csr', message: `its ${list} differ: ${parts.join(', and ')}` }],
    });
  }
}

/** Names in a message: the first few. */
function shown(names: readonly string[]): string {
  return names.slice(0, 5).join(', ') + (names.length > 5 ? ' …' : '');
}

/** Throws `invalid_request` for a CSR that an ACME CA would reject (RFC 8555 §7.4). */
export function refuseUnsuitableRequest(
  issuer: Pick<IssuerRow, 'name' | 'type'> | undefined,
  { domains, commonName }: SigningRequest,
): void {
  if (issuer?.type !== 'acme' || commonName === undefined || commonName === '') return;
  const lower = commonName.toLowerCase();
  if (domains.some((domain) => domain === lower)) return;
  const message = `issuer ${issuer.name} is an ACME CA, which rejects a CSR whose common name (${JSON.stringify(commonName.slice(0, 80))}) is not one of its names`;
  throw new Problem('invalid_request', { detail: sentence(message), errors: [{ path: 'csr', message }] });
}

/** Throws `invalid_request` if the current version has this key (SPKI DER) and was revoked. */
export async function refuseRevokedKey(
  reader: Reader,
  certificate: Pick<CertificateRow, 'id' | 'current_version'>,
  publicKey: Buffer,
): Promise<void> {
  if (!(await isRevokedKey(reader, certificate, publicKey))) return;
  throw revokedKey();
}

/** Throws `certificate_in_use` if a running server serves HTTPS with the certificate: it needs the private key. */
export async function refuseServedCertificate(writer: Writer, name: string): Promise<void> {
  const servers = await servingServers(writer);
  if (!servers.some(({ settings }) => settings.tls_certificate === name)) return;
  throw new Problem('certificate_in_use', {
    detail: `The vault serves HTTPS with certificate "${name}" and needs its private key, so the client cannot hold it.`,
    hint: 'Set another certificate with --tls-certificate first.',
  });
}

const flags = { key_type: '--key-type', reuse_key: '--reuse-key', rotate_key: '--rotate-key' } as const;

function notApplicable(setting: keyof typeof flags): Problem {
  const message = `the setting ${setting} (${flags[setting]}) does not apply to a certificate with a CSR: the client holds the private key`;
  return new Problem('invalid_request', {
    detail: sentence(message),
    hint: 'To change the key, send a CSR with another key. To let the vault generate keys again, remove the CSR: vault certificate update --csr none',
    errors: [{ path: setting, message }],
  });
}
