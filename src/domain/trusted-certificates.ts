/** Certificates to trust, as the API and the command line take them. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { encodePem, readPemBlocks } from '../crypto/pem.ts';

/** Certificates in PEM, normalized. */
export const trust = z.string().transform((text, context) => {
  const certificates = certificatesIn(text);
  if (certificates !== undefined) return certificates;
  context.addIssue({
    code: 'custom',
    message: 'not a PEM certificate; it starts with -----BEGIN CERTIFICATE-----',
  });
  return z.NEVER;
});

/** The certificates of a PEM text, normalized; undefined if it has none or anything is invalid. */
export function certificatesIn(text: string): string | undefined {
  try {
    const blocks = readPemBlocks(text, 'ca_pem').filter(({ label }) => label === 'CERTIFICATE');
    if (blocks.length === 0 || !blocks.every(({ der }) => new X509Certificate(der).raw.equals(der))) {
      return undefined;
    }
    return blocks.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
  } catch {
    // The caller has one message for all errors of OpenSSL and the PEM reader.
    return undefined;
  }
}
