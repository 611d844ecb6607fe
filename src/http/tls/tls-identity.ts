/** What the vault presents to TLS clients: a certificate with its key, and its properties. */

import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { encodePem, readPemBlocks } from '../../crypto/pem.ts';
import { publicKeyPin } from '../../crypto/public-key-pin.ts';
import { factsOf } from '../../crypto/x509/certificate-facts.ts';
import { isPubliclyTrusted } from '../../crypto/x509/public-trust.ts';

export type TlsIdentity = {
  /** Leaf and intermediates, PEM. */
  readonly fullchain: string;
  /** PEM. */
  readonly privateKey: Secret;
  readonly leaf: X509Certificate;
  /** Issued by the private CA: clients trust it by its pin, or by the root of the CA. */
  readonly isPrivate: boolean;
  readonly publiclyTrusted: boolean;
  /** `sha256//BASE64=` */
  readonly pin: string;
  /** UTC milliseconds. */
  readonly notAfter: number;
  /** Additional log fields. */
  readonly origin: Readonly<Record<string, unknown>>;
};

/** Only suites with forward secrecy and authenticated encryption, as in Mozilla's intermediate profile. */
const ciphers = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
].join(':');

/**
 * The first group is separate: a client that offers it gets it, even if that takes another round trip because it
 * guessed another one. It protects recorded traffic against future quantum computers.
 */
const groups = 'X25519MLKEM768/X25519:prime256v1:secp384r1';

/** TLS options for this identity, for servers and their contexts. */
export function secureOptions({ fullchain, privateKey }: Pick<TlsIdentity, 'fullchain' | 'privateKey'>) {
  return {
    cert: fullchain,
    key: privateKey.expose(),
    minVersion: 'TLSv1.2',
    ciphers,
    ecdhCurve: groups,
    honorCipherOrder: true,
  } as const;
}

/**
 * An identity from certificate and key. Throws OperatorError if TLS would reject them, such as keys that are too short.
 * A certificate of the private CA is not checked against public roots.
 */
export function tlsIdentity(
  material: Pick<TlsIdentity, 'fullchain' | 'privateKey' | 'isPrivate' | 'origin'>,
  now: number,
  publicRoots?: readonly string[],
): TlsIdentity {
  const { fullchain, isPrivate } = material;
  try {
    createSecureContext(secureOptions(material));
  } catch (error) {
    throw new OperatorError(`certificate or key unusable for HTTPS: ${describeSystemError(error)}`, {
      hint: 'Use an ECDSA key or an RSA key of at least 2048 bits, with its certificate.',
    });
  }
  const [leaf, ...others] = readPemBlocks(fullchain).map(
    ({ der }) => new X509Certificate(encodePem('CERTIFICATE', der)),
  );
  if (leaf === undefined) throw new Error('the served chain is empty');
  return {
    ...material,
    leaf,
    publiclyTrusted: !isPrivate && isPubliclyTrusted(leaf, others, now, publicRoots),
    pin: publicKeyPin(leaf),
    notAfter: factsOf(leaf).notAfter,
  };
}
