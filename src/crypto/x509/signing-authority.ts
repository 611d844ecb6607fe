/**
 * A CA that signs: its key and what its certificate says, opened once for any number of signatures, because reading the
 * certificate and the key takes as long as a signature of a fast curve.
 */
import { hash, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import { isKeyType } from '../../base/key-type.ts';
import { sequence } from '../der.ts';
import { DerReader, derTags } from '../der-reader.ts';
import { keyObject, keyTypeOf } from '../key-pair.ts';
import type { X509Issuer } from './x509-issuance.ts';
import { bitString, type SignatureAlgorithm, signatureAlgorithms } from './x509-values.ts';

const signOnThread = promisify(sign);

/** Keys that sign in less time than the way to another thread and back takes. */
const quickKeys: readonly string[] = ['ec256', 'ed25519'];

const subjectKeyIdentifier = '551d0e';

/** The tags of a TBSCertificate's own parts (RFC 5280 §4.1). */
const versionTag = 0xa0;
const extensionsTag = 0xa3;

export class SigningAuthority {
  readonly #key: KeyObject;
  readonly #algorithm: SignatureAlgorithm;
  readonly #isQuick: boolean;
  /** The subject of its certificate as DER. */
  readonly name: Buffer;
  /** As its certificate has it (§4.2.1.1); other CAs compute it in other ways. */
  readonly keyIdentifier: Buffer;
  /** UTC milliseconds. */
  readonly notAfter: number;

  /** Throws a plain error for a key of an unsupported type, or one that is not that of the certificate. */
  constructor({ certificate, privateKey }: X509Issuer) {
    this.#key = keyObject(privateKey);
    const keyType = keyTypeOf(this.#key);
    if (!isKeyType(keyType)) throw new Error(`signing with ${keyType} keys is not supported`);
    this.#algorithm = signatureAlgorithms[keyType];
    this.#isQuick = quickKeys.includes(keyType);
    const facts = new X509Certificate(certificate);
    if (!facts.checkPrivateKey(this.#key)) {
      throw new Error("the private key is not that of the issuer's certificate");
    }
    this.notAfter = facts.validToDate.getTime();
    const { subject, publicKey, keyIdentifier } = partsOf(certificate);
    this.name = subject;
    this.keyIdentifier = keyIdentifier ?? keyIdentifierOf(publicKey);
  }

  /** The AlgorithmIdentifier of its signatures (DER), which also stands in what is signed. */
  get algorithm(): Buffer {
    return this.#algorithm.identifier;
  }

  /**
   * What is signed (DER), with algorithm and signature behind it. Signatures that take long are computed on libuv's
   * threads.
   */
  async signed(content: Buffer): Promise<Buffer> {
    const { identifier, digest } = this.#algorithm;
    const signature = this.#isQuick
      ? sign(digest, content, this.#key)
      : await signOnThread(digest, content, this.#key);
    return sequence(content, identifier, bitString(signature));
  }
}

/** The authority that the issuer is, opened for one signature if it is not open. Throws as the constructor. */
export function opened(issuer: SigningAuthority | X509Issuer): SigningAuthority {
  return issuer instanceof SigningAuthority ? issuer : new SigningAuthority(issuer);
}

/** The SHA-1 hash of the bits of a public key (SPKI DER), which identifies it (§4.2.1.2, method 1). */
export function keyIdentifierOf(publicKey: Buffer): Buffer {
  const spki = new DerReader(publicKey).enter(derTags.sequence);
  spki.take(derTags.sequence);
  return hash('sha1', spki.take(derTags.bitString).content.subarray(1), 'buffer');
}

/** Of the certificate of an authority, which was read or written by this vault. Throws DerError. */
function partsOf(certificate: Buffer) {
  const signed = new DerReader(certificate).enter(derTags.sequence).enter(derTags.sequence);
  if (signed.nextTag === versionTag) signed.next();
  signed.take(derTags.integer);
  signed.take(derTags.sequence);
  signed.take(derTags.sequence);
  signed.take(derTags.sequence);
  const subject = signed.take(derTags.sequence).whole;
  const publicKey = signed.take(derTags.sequence).whole;
  return { subject, publicKey, keyIdentifier: keyIdentifierIn(signed) };
}

function keyIdentifierIn(signed: DerReader): Buffer | undefined {
  while (!signed.isDone && signed.nextTag !== extensionsTag) signed.next();
  if (signed.isDone) return undefined;
  const list = signed.enter(extensionsTag).enter(derTags.sequence);
  while (!list.isDone) {
    const extension = list.enter(derTags.sequence);
    const type = extension.take(derTags.objectIdentifier).content.toString('hex');
    if (type !== subjectKeyIdentifier) continue;
    return new DerReader(extension.take(derTags.octetString).content).take(derTags.octetString).content;
  }
  return undefined;
}
