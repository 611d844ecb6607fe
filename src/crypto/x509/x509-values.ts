/** What certificates and CRLs have in common, as DER (RFC 5280 §4.1): how they are signed, times and extensions. */
import type { KeyType } from '../../base/key-type.ts';
import { octetString, sequence, tagged } from '../der.ts';

/** An AlgorithmIdentifier as DER, and the digest for node:crypto (RFC 5758 §3.2, RFC 4055 §5, RFC 8410 §3). */
export type SignatureAlgorithm = { readonly identifier: Buffer; readonly digest: string | undefined };

const rsa = algorithm('300d06092a864886f70d01010b0500', 'sha256');

/** How each key type signs: the hash is as strong as the curve (RFC 5480 §4). */
export const signatureAlgorithms: Readonly<Record<KeyType, SignatureAlgorithm>> = {
  ec256: algorithm('300a06082a8648ce3d040302', 'sha256'),
  ec384: algorithm('300a06082a8648ce3d040303', 'sha384'),
  rsa2048: rsa,
  rsa3072: rsa,
  rsa4096: rsa,
  ed25519: algorithm('300506032b6570', undefined),
};

function algorithm(identifier: string, digest: string | undefined): SignatureAlgorithm {
  return { identifier: Buffer.from(identifier, 'hex'), digest };
}

/** TRUE, which stands in an extension only if it is critical. */
const critical = tagged(0x01, Buffer.of(0xff));

/** An extension with this identifier (DER) and value. */
export function extension(identifier: Buffer, value: Buffer): Buffer {
  return sequence(identifier, octetString(value));
}

/** An extension that verifiers must understand. */
export function criticalExtension(identifier: Buffer, value: Buffer): Buffer {
  return sequence(identifier, critical, octetString(value));
}

/** A BIT STRING of whole bytes. */
export function bitString(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.of(0), bytes);
}

/** A UTCTime up to 2049, then a GeneralizedTime (§4.1.2.5, §5.1.2.4). */
export function time(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  return text < '2050'
    ? tagged(0x17, Buffer.from(text.slice(2), 'latin1'))
    : tagged(0x18, Buffer.from(text, 'latin1'));
}
