/** What the vault shows to TLS clients: a certificate with its key, and what is known about it. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { factsOf } from '../../crypto/certificate-facts.ts';
import { encodePem, readPemBlocks } from '../../crypto/pem.ts';
import { publicKeyPin } from '../../crypto/public-key-pin.ts';
import { isPubliclyTrusted } from '../../crypto/public-trust.ts';

export type TlsIdentity = {
  /** Leaf and intermediates, PEM. */
  readonly fullchain: string;
  /** PEM. */
  readonly privateKey: Secret;
  readonly leaf: X509Certificate;
  /** From the private CA: clients know it by its pin, or by the CA's root. */
  readonly isPrivate: boolean;
  readonly publiclyTrusted: boolean;
  /** `sha256//BASE64=` */
  readonly pin: string;
  /** UTC milliseconds. */
  readonly notAfter: number;
  /** What the log says about it besides. */
  readonly origin: Readonly<Record<string, unknown>>;
};

/** Suites with forward secrecy and authenticated encryption only, as Mozilla's intermediate profile has them. */
const ciphers = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
].join(':');

/**
 * The first group is a tuple of its own: whoever offers it gets it, even where that takes another round trip because the
 * client guessed another one. It is secure also against who records today and has a quantum computer one day.
 */
const groups = 'X25519MLKEM768/X25519:prime256v1:secp384r1';

/** Options of TLS for this identity, for servers and their contexts. */
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
 * An identity of certificate and key. Throws OperatorError where TLS would refuse them, such as keys that are too short.
 * Where the private CA made it, nobody else's roots are asked about it.
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
    throw new OperatorError(`certificate or key unusable for HTTPS: ${(error as Error).message}`, {
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
