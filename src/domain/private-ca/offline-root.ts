/**
 * Keeps the key of a root outside the vault: export removes it, import brings it back. Until then, the newest
 * intermediate issues, and the last CRL of the root is served.
 */
import { createPublicKey, X509Certificate } from 'node:crypto';
import { day } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { encryptedKeyPem, openEncryptedKey } from '../../crypto/bundles/encrypted-key.ts';
import { publicKeyPin } from '../../crypto/public-key-pin.ts';
import { signsFor } from '../../crypto/x509/certificate-chain.ts';
import type { Reader } from '../../db/database.ts';
import {
  type CaCertificateRow,
  findCaCertificateById,
  findRoot,
  listIntermediates,
  setCaPrivateKey,
} from '../../db/tables/issuance/ca-certificates.ts';
import { findIssuer, type IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { authorityKeyOwner, sealFor } from '../sealed-secrets.ts';
import { authority, holdsKey, intermediateUntil } from './authorities.ts';
import { importRootKey } from './authority-refusals.ts';
import { settingsOfCa } from './ca-settings.ts';
import { draftCrl } from './crl-signing.ts';

/** An intermediate that expires sooner is replaced before the key of its root leaves. */
const longEnough = 4 * 365 * day;

export type RootKeyExport = {
  readonly actor: Actor;
  /** The name of the private CA. */
  readonly issuer: string;
  readonly passphrase: Secret<string>;
  /** Writes the PEM durably, and returns what it reads back. */
  readonly keep: (pem: string) => Buffer;
};

/** What was exported, and until when the private CA manages without the key (UTC milliseconds). */
export type ExportedRootKey = { readonly root: X509Certificate; readonly issuesUntil: number };

/**
 * Writes the key of a root under a passphrase, verifies what was written, and removes the key from the vault. A CRL of
 * the root that is valid until its intermediates expire is stored in the same transaction. Throws OperatorError if the
 * vault does not hold the key; then nothing is written.
 */
export async function exportRootKey(
  vault: SecretsContext,
  { actor, issuer: name, passphrase, keep }: RootKeyExport,
): Promise<ExportedRootKey> {
  const { db, world } = vault;
  const { issuer, root } = await rootOf(db.reader, name);
  refuseCompany(name, root);
  if (!holdsKey(root)) {
    throw new OperatorError(`the vault does not hold the key of the root of ${name}`, {
      hint: `It was exported before. To import it again:\nTry: ${importRootKey(name)}`,
    });
  }
  const settings = await settingsOfCa(db.reader, issuer.id);
  const { intermediate: issuing } = await intermediateUntil(
    vault,
    issuer.id,
    settings,
    world.now() + longEnough,
  );
  const { privateKey } = authority(vault, root);
  const certificate = new X509Certificate(root.certificate);
  const file = keep(await encryptedKeyPem(world, privateKey, passphrase));
  const readBack = openEncryptedKey(file, [passphrase]);
  if (typeof readBack === 'string' || !signsFor(readBack, certificate)) {
    throw new OperatorError('the file does not contain what was written to it', {
      hint: 'Write to another disk. The vault still holds the key.',
    });
  }
  for (;;) {
    const end = await lastExpiry(db.reader, root);
    const { store } = await draftCrl(vault, root, Math.min(end, root.not_after));
    const isDone = await db.write(async (writer) => {
      const current = await findCaCertificateById(writer, root.id);
      if (current === undefined || !holdsKey(current)) {
        throw new OperatorError('another command exported the key meanwhile', {
          hint: 'Both files have it. Keep one of them.',
        });
      }
      // Another process may have issued an intermediate or signed a CRL; the last CRL has to follow.
      if ((await lastExpiry(writer, root)) > end) return false;
      if (!(await store(writer))) return false;
      await setCaPrivateKey(writer, root.id, Buffer.alloc(0));
      record(writer, event(actor, 'issuer.root_key_export', name, certificate), world.now());
      return true;
    });
    if (isDone) return { root: certificate, issuesUntil: issuing.not_after };
  }
}

export type RootKeyImport = {
  readonly actor: Actor;
  readonly issuer: string;
  /** The content of the file, and how the passphrase may read. */
  readonly file: Buffer;
  readonly passphrases: readonly Secret<string>[];
};

/**
 * Stores the key of a root again. Throws OperatorError if the file does not open, has another key, or if the vault
 * holds the key.
 */
export async function importRootKeyFile(
  vault: SecretsContext,
  { actor, issuer: name, file, passphrases }: RootKeyImport,
): Promise<void> {
  const { db, world } = vault;
  const { root } = await rootOf(db.reader, name);
  const certificate = new X509Certificate(root.certificate);
  refuseCompany(name, root);
  if (holdsKey(root)) throw heldAlready(name);
  const key = openEncryptedKey(file, passphrases);
  if (typeof key === 'string') throw refusals[key]();
  if (!signsFor(key, certificate)) {
    throw new OperatorError(`the key in the file is not that of the root of ${name}`, {
      hint: `The root has the key ${publicKeyPin(certificate)}, the file ${publicKeyPin({ publicKey: createPublicKey(key) })}.`,
    });
  }
  const privateKey = new Secret(key.export({ type: 'pkcs8', format: 'der' }));
  await db.write(async (writer) => {
    const current = await findCaCertificateById(writer, root.id);
    if (current === undefined || holdsKey(current)) throw heldAlready(name);
    const sealed = await sealFor(vault, writer, authorityKeyOwner(root.id), privateKey);
    await setCaPrivateKey(writer, root.id, sealed);
    record(writer, event(actor, 'issuer.root_key_import', name, certificate), world.now());
  });
}

const refusals = {
  'no-key': () =>
    new OperatorError('the file has no private key in PEM', {
      hint: 'Name the file that "vault ca export-root-key" wrote.',
    }),
  'not-encrypted': () =>
    new OperatorError('the private key in the file is not encrypted', {
      hint: 'Encrypt it first, and delete the file.\nTry: openssl pkcs8 -topk8 -v2 aes-256-cbc -iter 2000000 -in FILE -out root.key',
    }),
  'wrong-passphrase': () =>
    new OperatorError('wrong passphrase for the key, or the file is damaged', {
      hint: 'Use the passphrase that the key was exported with.',
    }),
} as const;

function heldAlready(name: string): OperatorError {
  return new OperatorError(`the vault already holds the key of the root of ${name}`, {
    hint: 'Nothing was changed.',
  });
}

function refuseCompany(name: string, { is_external: isExternal }: CaCertificateRow): void {
  if (isExternal === 0) return;
  throw new OperatorError(`the root of ${name} belongs to another CA, which keeps its key`, {
    hint: 'Nothing was changed. For another intermediate, send that CA a new CSR.\nTry: vault ca csr',
  });
}

/** The private CA of this name and its root. */
async function rootOf(
  reader: Reader,
  name: string,
): Promise<{ readonly issuer: IssuerRow; readonly root: CaCertificateRow }> {
  const issuer = await findIssuer(reader, name);
  const root = issuer && (await findRoot(reader, issuer.id));
  if (issuer !== undefined && root !== undefined) return { issuer, root };
  throw new OperatorError(
    issuer === undefined ? `no issuer named ${name}` : `issuer ${name} is not a private CA`,
    { hint: 'Try: vault issuer list' },
  );
}

/** When the last intermediate of a root expires. */
async function lastExpiry(reader: Reader, root: CaCertificateRow): Promise<number> {
  return (await listIntermediates(reader, root))[0]?.not_after ?? 0;
}

function event(
  actor: Actor,
  action: 'issuer.root_key_export' | 'issuer.root_key_import',
  name: string,
  { fingerprint256 }: X509Certificate,
) {
  const fingerprint = fingerprint256.replaceAll(':', '').toLowerCase();
  return { actor, action, resource: `issuer:${name}`, detail: { root_fingerprint_sha256: fingerprint } };
}
