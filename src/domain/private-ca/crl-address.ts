/**
 * Where clients find the CRLs of the private CA. Only `vault serve` knows its public URL, so it stores the address for
 * all processes that issue.
 */
import { describeFileError } from '../../base/system-error.ts';
import { deleteSettings, putSetting, readSetting } from '../../db/tables/settings.ts';
import type { DatabaseContext, LogContext } from '../contexts.ts';

/** The path below the base of the vault's URLs. */
export function crlPath(caCertificateId: number | string): string {
  return `/client/crls/${caCertificateId}`;
}

/**
 * The URL of the CRL of a CA certificate; undefined if the vault serves nothing at a public address over plain HTTP.
 */
export async function crlUrl({ db }: DatabaseContext, caCertificateId: number): Promise<string | undefined> {
  const base = await readSetting(db.reader, 'crl-base-url');
  return typeof base === 'string' ? `${base}${crlPath(caCertificateId)}` : undefined;
}

/**
 * The base of the URLs of CRLs. It is plain HTTP (RFC 5280 §8): a client that verifies the certificate of an HTTPS
 * server would need the CRL first. With HTTPS, `hasChallengeListener` tells whether the vault answers at port 80.
 */
export function crlBaseUrl(publicUrl: string | undefined, hasChallengeListener: boolean): string | undefined {
  if (publicUrl === undefined) return undefined;
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol === 'http:') return publicUrl;
  return hasChallengeListener ? `http://${hostname}` : undefined;
}

/**
 * Stores the base, or that there is none, for what is issued from now on. Logs a failure, which must not keep the vault
 * from serving.
 */
export async function recordCrlBaseUrl(
  { db, log }: DatabaseContext & LogContext,
  base: string | undefined,
): Promise<void> {
  try {
    if ((await readSetting(db.reader, 'crl-base-url')) === base) return;
    await db.write((writer) =>
      base === undefined
        ? deleteSettings(writer, ['crl-base-url'])
        : putSetting(writer, 'crl-base-url', base),
    );
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to record the address of the CRLs');
  }
}
