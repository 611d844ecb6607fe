/** API keys that work only together with a client certificate: what their refusals say, and why. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../base/problem.ts';
import type { ApiKeyIdentity } from '../../domain/access/identity.ts';
import type {
  CertificateFault,
  PresentedCertificates,
} from '../../domain/client-certificates/presented-certificates.ts';
import { presentedCertificate } from '../tls/presented-certificate.ts';

type Fault = CertificateFault | 'no TLS' | 'none';

/** The reason in the audit log, and what the client reads. Neither contains the name of the certificate. */
const refusals: Readonly<Record<Fault, readonly [reason: string, detail: string, hint: string]>> = {
  'no TLS': [
    'client certificate without TLS',
    'This API key works only with its client certificate, and this request reached the vault without TLS.',
    'Connect to the HTTPS port of the vault itself: a proxy that terminates TLS keeps the client certificate.',
  ],
  none: [
    'no client certificate',
    'This API key works only with its client certificate, and the client presented none.',
    'With curl, add --cert FILE and --key FILE. A connection from before the key was bound needs to be closed first.',
  ],
  other: [
    'other client certificate',
    'The client certificate of this connection is not the one of this API key.',
    'Present the certificate that "vault api-key list" shows for the key.',
  ],
  'not valid yet': [
    'client certificate not valid yet',
    'The client certificate is not valid yet.',
    'Check the clocks of the client and of the vault.',
  ],
  expired: [
    'client certificate expired',
    'The client certificate has expired, or the CA that issued it has.',
    'Install the current version of the certificate on the client.',
  ],
  revoked: [
    'client certificate revoked',
    'The client certificate is revoked.',
    'Install the current version of the certificate on the client.',
  ],
  usage: [
    'client certificate for servers only',
    'The client certificate lacks the extended key usage clientAuth.',
    'The usage of a certificate is set with "vault certificate update --usage".',
  ],
};

/**
 * Why a request may not use a key that is bound to a certificate: the problem, and the reason for the audit log.
 * Undefined if the connection presented that certificate.
 */
export async function certificateRefusal(
  { presented }: { readonly presented: PresentedCertificates },
  bound: NonNullable<ApiKeyIdentity['clientCertificate']>,
  request: Pick<IncomingMessage, 'socket'>,
): Promise<{ readonly problem: Problem; readonly reason: string } | undefined> {
  const certificate = presentedCertificate(request);
  const fault = typeof certificate === 'string' ? certificate : await presented.faultOf(bound, certificate);
  if (fault === undefined) return undefined;
  const [reason, detail, hint] = refusals[fault];
  return { problem: new Problem('forbidden', { detail, hint }), reason };
}
