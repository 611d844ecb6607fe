/** A setting that channels have in common: certificates that are trusted in place of the public CAs. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';

const block = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** PEM, for receivers with a private CA. */
export const trustedCa = z
  .string({ error: 'must be certificates in PEM' })
  .max(100_000, { error: 'must be certificates in PEM, of at most 100 kB' })
  .refine(holdsCertificates, { error: 'must be certificates in PEM (-----BEGIN CERTIFICATE-----)' })
  .optional();

function holdsCertificates(text: string): boolean {
  const blocks = text.match(block) ?? [];
  return blocks.length > 0 && blocks.every(isCertificate);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    // Whatever OpenSSL calls it.
    return false;
  }
}
