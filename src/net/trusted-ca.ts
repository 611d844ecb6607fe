/** A setting of what the vault connects to: certificates that replace the public CAs. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';

const begin = '-----BEGIN CERTIFICATE-----';
const end = '-----END CERTIFICATE-----';

/** PEM, for recipients with a private CA. */
export const trustedCa = z
  .string({ error: 'must be PEM certificates' })
  .max(100_000, { error: 'must be PEM certificates of at most 100 kB' })
  .refine(holdsCertificates, { error: 'must be PEM certificates (-----BEGIN CERTIFICATE-----)' })
  .describe('PEM certificates that replace the public CAs')
  .optional();

function holdsCertificates(text: string): boolean {
  const blocks = text
    .split(end)
    .slice(0, -1)
    .flatMap((piece) => {
      const content = piece.slice(piece.lastIndexOf(begin) + begin.length);
      const isWhole = piece.includes(begin) && /^[A-Za-z0-9+/=\s]+$/.test(content);
      return isWhole ? [begin + content + end] : [];
    });
  return blocks.length > 0 && blocks.every(isCertificate);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    // The error of OpenSSL does not matter.
    return false;
  }
}
