/**
 * Other formats of a version: made from the stored artifacts for each download. Their entity tags come from those of
 * the artifacts, so that an unchanged file costs neither a decryption nor a key derivation.
 */
import { requireIntegrity } from '../../base/integrity.ts';
import { netstring } from '../../base/netstring.ts';
import type { Scope } from '../../base/scope.ts';
import type { Secret } from '../../base/secret.ts';
import { type TarFile, tar } from '../../base/tar.ts';
import { type KeystoreEncryption, keystoreFormat, writePkcs12 } from '../../crypto/bundles/pkcs12-writer.ts';
import { readPemBlocks } from '../../crypto/pem.ts';
import type { HandedOutRow } from '../../db/tables/certificates/certificate-versions.ts';
import type { DatabaseContext, SealingContext } from '../contexts.ts';
import { artifactNames, publicBody } from './artifacts.ts';
import { holdsKey, openVersionKey, versionPrivateKey } from './versions.ts';

type Format = {
  readonly scope: Scope;
  readonly keystore: 'none' | 'required' | 'optional';
  /** Whether there is no such file without the private key. */
  readonly needsKey: boolean;
};

/** By file name: the scope that reads it, and whether a keystore password belongs to it. */
export const formats = {
  'combined.pem': { scope: 'private_keys:read', keystore: 'none', needsKey: true },
  'certificate.der': { scope: 'certificates:read', keystore: 'none', needsKey: false },
  'keystore.p12': { scope: 'private_keys:read', keystore: 'required', needsKey: true },
  // Its scope does not depend on the certificate: without a private key today, the next version may have one.
  'archive.tar': { scope: 'private_keys:read', keystore: 'optional', needsKey: false },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;
export const formatNames = Object.keys(formats) as FormatName[];

/** All files of a certificate that can be downloaded. */
export const fileNames = [...artifactNames, ...formatNames] as const;
export type FileName = (typeof fileNames)[number];

/** How to protect a keystore. */
export type Keystore = { readonly password: Secret<string>; readonly encryption: KeystoreEncryption };

/** A version in a format, and the keystore of formats that contain one. */
export type FormatRequest = {
  readonly name: string;
  readonly file: FormatName;
  readonly row: HandedOutRow;
  readonly keystore: Keystore | undefined;
};

/** Changes when the same version would give other bytes, so that entity tags change too. */
const formatOfFiles = 1;

/**
 * The strong entity tag. It is keyed, so that people who see the tag of a keystore cannot test passwords with it, and
 * survives a rotation of the master key.
 */
export function formatTag({ db }: DatabaseContext, { name, file, row, keystore }: FormatRequest): string {
  const parts = [file, String(formatOfFiles), name, row.private_key_etag, row.fullchain_etag];
  if (keystore !== undefined) {
    parts.push(String(keystoreFormat), keystore.encryption, keystore.password.expose());
  }
  const tag = requireIntegrity(db).tag('entity tag', parts.map(netstring).join(''));
  return `"${tag.subarray(0, 18).toString('base64url')}"`;
}

/** The file. Unseals the private key unless it is public; a keystore takes about 20 ms. */
export async function formatBody(vault: SealingContext, request: FormatRequest): Promise<Buffer> {
  const { file, row } = request;
  switch (file) {
    case 'combined.pem':
      return combined(vault, row);
    case 'certificate.der':
      return certificatesOf(row.certificate_pem)[0];
    case 'keystore.p12':
      if (request.keystore === undefined) throw new Error('a keystore needs a password');
      return keystoreBody(vault, request, request.keystore);
    case 'archive.tar':
      return tar(await archived(vault, request), row.created_at);
  }
}

function combined(vault: SealingContext, row: HandedOutRow): Buffer {
  return Buffer.concat([openVersionKey(vault, row).expose(), Buffer.from(publicBody(row, 'fullchain'))]);
}

function keystoreBody(
  vault: SealingContext,
  { name, row }: Pick<FormatRequest, 'name' | 'row'>,
  { password, encryption }: Keystore,
): Promise<Buffer> {
  const certificates = certificatesOf(publicBody(row, 'fullchain'));
  const privateKey = versionPrivateKey(vault, row);
  return writePkcs12(vault.world, { name, certificates, privateKey }, password, encryption);
}

/**
 * Every artifact under one name, and the formats; with a keystore if there is a password for it. Without a private key,
 * only the public files.
 */
async function archived(vault: SealingContext, request: FormatRequest): Promise<TarFile[]> {
  const { row, keystore } = request;
  const open = (name: string, text: string): TarFile => ({ name, content: Buffer.from(text), mode: 0o644 });
  const secret = (name: string, content: Buffer): TarFile => ({ name, content, mode: 0o600 });
  return [
    open('certificate.crt', publicBody(row, 'certificate')),
    open('chain.crt', publicBody(row, 'chain')),
    open('fullchain.crt', publicBody(row, 'fullchain')),
    ...(holdsKey(row)
      ? [
          secret('private.key', openVersionKey(vault, row).expose()),
          secret('combined.pem', combined(vault, row)),
        ]
      : []),
    { name: 'certificate.der', content: certificatesOf(row.certificate_pem)[0], mode: 0o644 },
    ...(keystore === undefined ? [] : [secret('keystore.p12', await keystoreBody(vault, request, keystore))]),
  ];
}

function certificatesOf(pem: string): [Buffer, ...Buffer[]] {
  const [leaf, ...chain] = readPemBlocks(pem).map(({ der }) => der);
  if (leaf === undefined) throw new Error('a version without a certificate');
  return [leaf, ...chain];
}
