/**
 * Replaces the root of a private CA. Both roots certify each other, so that clients that trust either one accept what
 * is issued under both; the former one stays among those to trust until what was issued under it has expired.
 */
import { X509Certificate } from 'node:crypto';
import { OperatorError } from '../../base/operator-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import { issueCrossCertificate, pathLengthOf } from '../../crypto/x509/x509-issuance.ts';
import {
  type CaCertificateRow,
  findRoot,
  setCrossCertificate,
} from '../../db/tables/issuance/ca-certificates.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import {
  type AuthorityDraft,
  authority,
  draftIntermediate,
  draftRoot,
  holdsKey,
  insertAuthority,
  issued,
  requireRoot,
  serialSize,
  validity,
} from './authorities.ts';
import { importRootKey } from './authority-refusals.ts';
import { neededUntil, trustedRoots } from './ca-chains.ts';
import { authorityLimits, type CaSettings, permittedIn, settingsOfCa } from './ca-settings.ts';

/** A private CA by its issuer. */
export type PrivateCa = { readonly id: number; readonly name: string };

export type CaRotation = {
  readonly former: CaCertificateRow;
  /** The last certificate under the former root expires by then (UTC milliseconds). */
  readonly formerUntil: number;
  /** Whether the former root permits a certificate less in a chain than its successor needs; see `linkedName`. */
  readonly isTight: boolean;
};

/**
 * Creates a new root with the constraints of the former one, an intermediate under it, and the certificates that link
 * both roots. From the next issuance, certificates are issued under the new root. Throws OperatorError, having changed
 * nothing, if the vault does not hold the key of the root, or clients may still need the root before it.
 */
export async function rotateRoot(vault: SecretsContext, actor: Actor, ca: PrivateCa): Promise<CaRotation> {
  const { db, world } = vault;
  const former = await requireRoot(db.reader, ca.id);
  await refuseRotation(vault, ca, former);
  const settings = await settingsOfCa(db.reader, ca.id);
  // What the former root permits: else its successor would not vouch for all that was issued under it.
  const rootSettings = { ...settings, ...permittedIn(former.constraints) };
  const isTight = (await pathLengthOf(former.certificate)) === settings.pathLength;
  const root = await draftRoot(vault, rootSettings, linkedName(settings, former, isTight));
  const { certificate, privateKey, not_after: notAfter } = { ...root.row, privateKey: root.privateKey };
  const intermediate = await draftIntermediate(vault, settings, { certificate, privateKey, notAfter });
  const links = await linkRoots(vault, rootSettings, former, root);
  await db.write(async (writer) => {
    const current = await findRoot(writer, ca.id);
    if (current?.id !== former.id || !holdsKey(current)) {
      throw new OperatorError(`another command replaced the root of ${ca.name} meanwhile`, {
        hint: 'Nothing was changed.',
      });
    }
    const { id } = await insertAuthority(vault, writer, ca.id, root, {
      generation: former.generation + 1,
      upper_chain: links.newByFormer,
    });
    await insertAuthority(vault, writer, ca.id, intermediate, { signer_id: id });
    await setCrossCertificate(writer, former.id, links.formerByNew);
    const detail = { root_fingerprint_sha256: certificateFacts(certificate).fingerprintSha256 };
    record(writer, { actor, action: 'issuer.rotate', resource: `issuer:${ca.name}`, detail }, world.now());
  });
  return { former, formerUntil: await neededUntil(db.reader, former), isTight };
}

async function refuseRotation(
  { db, world }: SecretsContext,
  ca: PrivateCa,
  former: CaCertificateRow,
): Promise<void> {
  if (former.is_external === 1) {
    throw new OperatorError(`the root of ${ca.name} belongs to another CA, which replaces it`, {
      hint: `Ask that CA for a new intermediate.\nTry: vault ca csr --issuer ${ca.name} --new`,
    });
  }
  if (!holdsKey(former)) {
    throw new OperatorError(`the vault does not hold the key of the root of ${ca.name}`, {
      hint: `It has to sign its successor. Import it first.\nFix: ${importRootKey(ca.name)}`,
    });
  }
  if (former.not_after <= world.now()) {
    throw new OperatorError(`the root of ${ca.name} expired at ${formatTimestamp(former.not_after)}`, {
      hint: 'Clients that trust it cannot be led to another one. Add a private CA, and install its root on them.\nTry: vault issuer add --type local-ca --name NAME',
    });
  }
  const [before] = await trustedRoots(db.reader, ca.id, world.now());
  if (before !== undefined && before.id !== former.id) {
    const until = formatTimestamp(await neededUntil(db.reader, before));
    throw new OperatorError(
      `the root of ${ca.name} was replaced before, and clients may trust only the former one`,
      {
        hint: `The last certificate under it expires at ${until}. Rotate after that.`,
      },
    );
  }
}

/** Each root certified by the key of the other. */
async function linkRoots(
  vault: SecretsContext,
  settings: CaSettings,
  former: CaCertificateRow,
  root: AuthorityDraft,
): Promise<{ readonly newByFormer: Buffer; readonly formerByNew: Buffer }> {
  const { world } = vault;
  const not_after = Math.min(former.not_after, root.row.not_after);
  const link = (subject: Buffer, issuer: Parameters<typeof issueCrossCertificate>[0]['issuer']) =>
    issueCrossCertificate({
      root: subject,
      issuer,
      serial: world.randomBytes(serialSize),
      ...issued({ ...validity(world.now(), not_after - world.now()), not_after }),
      ...authorityLimits(settings, settings.pathLength),
    });
  const { certificate } = root.row;
  return {
    newByFormer: await link(certificate, authority(vault, former)),
    formerByNew: await link(former.certificate, { certificate, privateKey: root.privateKey }),
  };
}

/**
 * The common name of the next root. Roots of version 0.1.0 permit only one certificate between themselves and a leaf; a
 * certificate whose subject and issuer have one name does not count (RFC 5280 §6.1.4), so their successors are called
 * as they are.
 */
function linkedName(
  { commonName }: CaSettings,
  { certificate, generation }: CaCertificateRow,
  isTight: boolean,
): string | undefined {
  if (isTight) return commonName ?? /^CN=(.*)$/m.exec(new X509Certificate(certificate).subject)?.[1];
  return commonName && `${commonName} G${generation + 2}`;
}
