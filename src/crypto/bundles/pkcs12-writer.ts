/**
 * Writes PKCS#12 files (RFC 7292) with a certificate, its chain and its private key. The same contents and password
 * give the same bytes: salts and initialization vectors are derived from the private key instead of drawn at random.
 */
import { createCipheriv, createHash, createHmac, hkdf, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { netstring } from '../../base/netstring.ts';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import {
  bmpString,
  explicit,
  implicit,
  integer,
  nothing,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
} from '../der.ts';
import { pkcs12Key } from './pkcs12-key.ts';

/**
 * `aes256`: AES-256-CBC with PBKDF2 and HMAC-SHA-256, and an SHA-256 MAC; the form of OpenSSL 3. `legacy`: triple DES
 * and an SHA-1 MAC, for programs that read nothing newer.
 */
export const keystoreEncryptions = ['aes256', 'legacy'] as const;
export type KeystoreEncryption = (typeof keystoreEncryptions)[number];

export type KeystoreContents = {
  /** The friendly name; Java calls it the alias. */
  readonly name: string;
  /** DER: the leaf, then its chain. */
  readonly certificates: readonly [Buffer, ...Buffer[]];
  /** PKCS#8 DER. */
  readonly privateKey: Secret;
};

/** Changes when the same contents would give other bytes, so that entity tags change too. */
export const keystoreFormat = 1;

/** What Java's keytool uses, and for legacy files what Windows uses. Programs refuse files with far more. */
const iterationsOf = { aes256: 10_000, legacy: 2_000 } as const satisfies Record<KeystoreEncryption, number>;

const oids = {
  data: objectIdentifier('1.2.840.113549.1.7.1'),
  encryptedData: objectIdentifier('1.2.840.113549.1.7.6'),
  friendlyName: objectIdentifier('1.2.840.113549.1.9.20'),
  localKeyId: objectIdentifier('1.2.840.113549.1.9.21'),
  x509Certificate: objectIdentifier('1.2.840.113549.1.9.22.1'),
  shroudedKeyBag: objectIdentifier('1.2.840.113549.1.12.10.1.2'),
  certBag: objectIdentifier('1.2.840.113549.1.12.10.1.3'),
  sha1AndTripleDes: objectIdentifier('1.2.840.113549.1.12.1.3'),
  pbkdf2: objectIdentifier('1.2.840.113549.1.5.12'),
  pbes2: objectIdentifier('1.2.840.113549.1.5.13'),
  hmacSha256: objectIdentifier('1.2.840.113549.2.9'),
  aes256Cbc: objectIdentifier('2.16.840.1.101.3.4.1.42'),
  sha1: objectIdentifier('1.3.14.3.2.26'),
  sha256: objectIdentifier('2.16.840.1.101.3.4.2.1'),
};

/** How a part is encrypted: its AlgorithmIdentifier, the cipher and what the cipher needs. */
type Sealing = {
  readonly algorithm: Buffer;
  readonly cipher: 'aes-256-cbc' | 'des-ede3-cbc';
  readonly key: Buffer;
  readonly iv: Buffer;
};

/** Bytes that are unpredictable without the private key. */
type Salts = { readonly take: (size: number) => Buffer };

/**
 * The file. The password has at least one character. The key derivation runs on libuv's threads, and in slices of half
 * a millisecond on the event loop; it takes about 20 ms.
 */
export async function writePkcs12(
  world: Pick<World, 'turn'>,
  contents: KeystoreContents,
  password: Secret<string>,
  encryption: KeystoreEncryption,
): Promise<Buffer> {
  const salts = await saltsFor(contents, password, encryption);
  const seal = encryption === 'legacy' ? tripleDes : aes256;
  const certificates = sealed(await seal(world, password, salts), certificateBags(contents));
  const key = await seal(world, password, salts);
  const authenticated = sequence(
    contentInfo(
      oids.encryptedData,
      sequence(integer(0), sequence(oids.data, certificates.algorithm, implicit(0, certificates.ciphertext))),
    ),
    contentInfo(oids.data, octetString(sequence(keyBag(contents, key)))),
  );
  return sequence(
    integer(3),
    contentInfo(oids.data, octetString(authenticated)),
    await macData(world, authenticated, password, salts, encryption),
  );
}

/**
 * Salts from a function of the private key and everything that shapes the file, so that no two different files share
 * one. To people without the private key they look random: they can neither predict them nor test a password with them.
 */
async function saltsFor(
  { name, certificates, privateKey }: KeystoreContents,
  password: Secret<string>,
  encryption: KeystoreEncryption,
): Promise<Salts> {
  const shape = createHash('sha256');
  for (const text of [String(keystoreFormat), encryption, name, password.expose()])
    shape.update(netstring(text));
  for (const certificate of certificates) shape.update(createHash('sha256').update(certificate).digest());
  const info = Buffer.concat([Buffer.from('certificate vault keystore '), shape.digest()]);
  const bytes = Buffer.from(await promisify(hkdf)('sha256', privateKey.expose(), Buffer.alloc(0), info, 128));
  let taken = 0;
  return {
    take: (size) => {
      taken += size;
      return bytes.subarray(taken - size, taken);
    },
  };
}

/** PBES2 (RFC 8018 §6.2). The password is UTF-8. */
async function aes256(_world: unknown, password: Secret<string>, salts: Salts): Promise<Sealing> {
  const iterations = iterationsOf.aes256;
  const [salt, iv] = [salts.take(16), salts.take(16)];
  const key = await promisify(pbkdf2)(password.expose(), salt, iterations, 32, 'sha256');
  const prf = sequence(oids.hmacSha256, nothing);
  const derivation = sequence(oids.pbkdf2, sequence(octetString(salt), integer(iterations), prf));
  const scheme = sequence(oids.aes256Cbc, octetString(iv));
  const algorithm = sequence(oids.pbes2, sequence(derivation, scheme));
  return { algorithm, cipher: 'aes-256-cbc', key, iv };
}

/** pbeWithSHAAnd3-KeyTripleDES-CBC (RFC 7292 §C). */
async function tripleDes(
  world: Pick<World, 'turn'>,
  password: Secret<string>,
  salts: Salts,
): Promise<Sealing> {
  const [salt, iterations] = [salts.take(8), iterationsOf.legacy];
  const derivation = { hash: 'sha1', salt, iterations } as const;
  return {
    algorithm: sequence(oids.sha1AndTripleDes, sequence(octetString(salt), integer(iterations))),
    cipher: 'des-ede3-cbc',
    key: await pkcs12Key(world, password, 'key', 24, derivation),
    iv: await pkcs12Key(world, password, 'iv', 8, derivation),
  };
}

/** What integrity rests on: an HMAC of the authenticated safe (RFC 7292 §4, MacData). */
async function macData(
  world: Pick<World, 'turn'>,
  authenticated: Buffer,
  password: Secret<string>,
  salts: Salts,
  encryption: KeystoreEncryption,
): Promise<Buffer> {
  const [hash, size, saltSize] =
    encryption === 'legacy' ? (['sha1', 20, 8] as const) : (['sha256', 32, 16] as const);
  const [salt, iterations] = [salts.take(saltSize), iterationsOf[encryption]];
  const key = await pkcs12Key(world, password, 'mac', size, { hash, salt, iterations });
  const digest = octetString(createHmac(hash, key).update(authenticated).digest());
  const digestInfo = sequence(sequence(oids[hash], nothing), digest);
  return sequence(digestInfo, octetString(salt), integer(iterations));
}

function sealed({ algorithm, cipher: name, key, iv }: Sealing, plaintext: Buffer) {
  const cipher = createCipheriv(name, key, iv);
  return { algorithm, ciphertext: Buffer.concat([cipher.update(plaintext), cipher.final()]) };
}

function certificateBags({ name, certificates: [leaf, ...chain] }: KeystoreContents): Buffer {
  return sequence(
    certificateBag(leaf, namesOf(name, leaf)),
    ...chain.map((certificate) => certificateBag(certificate)),
  );
}

function certificateBag(certificate: Buffer, ...attributes: readonly Buffer[]): Buffer {
  const value = sequence(oids.x509Certificate, explicit(0, octetString(certificate)));
  return sequence(oids.certBag, explicit(0, value), ...attributes);
}

function keyBag({ name, certificates: [leaf], privateKey }: KeystoreContents, sealing: Sealing): Buffer {
  const { algorithm, ciphertext } = sealed(sealing, privateKey.expose());
  const value = sequence(algorithm, octetString(ciphertext));
  return sequence(oids.shroudedKeyBag, explicit(0, value), namesOf(name, leaf));
}

/**
 * The attributes that tie key and leaf together: both have the same id, which is the SHA-1 of the leaf by convention.
 */
function namesOf(name: string, leaf: Buffer): Buffer {
  const id = createHash('sha1').update(leaf).digest();
  return setOf(
    sequence(oids.friendlyName, setOf(bmpString(name))),
    sequence(oids.localKeyId, setOf(octetString(id))),
  );
}

function contentInfo(type: Buffer, content: Buffer): Buffer {
  return sequence(type, explicit(0, content));
}
