/** Private keys that must be RSA, recognized before OpenSSL reads them. */
import { encodePem } from './pem.ts';

/**
 * Version and algorithm of an RSA key in PKCS#8 (RFC 5208 §5, RFC 8017 §A.1), after a header with a two-byte length.
 */
const rsaBegins = Buffer.from('020100300d06092a864886f70d0101010500', 'hex');
const longestKey = 16_384;

/**
 * The key as PEM, or undefined if it is not an RSA key. OpenSSL completes other keys while it reads them, which takes
 * hours if their numbers are large.
 */
export function rsaKeyIn(text: string): string | undefined {
  const [, base64 = ''] =
    /-----BEGIN PRIVATE KEY-----([^-]{1,22000})-----END PRIVATE KEY-----/.exec(text) ?? [];
  const der = Buffer.from(base64, 'base64');
  const isRsa = der.length <= longestKey && der.subarray(4, 4 + rsaBegins.length).equals(rsaBegins);
  return isRsa ? encodePem('PRIVATE KEY', der) : undefined;
}
