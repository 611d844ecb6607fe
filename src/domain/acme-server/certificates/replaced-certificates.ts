/** Orders that replace a certificate (RFC 9773 §5): it must be one of the client, and each is replaced once. */
import { X509Certificate } from 'node:crypto';
import { renewalInfoId } from '../../../acme/renewal-info.ts';
import type { Identifier } from '../../../base/identifier.ts';
import { parseJson } from '../../../base/json.ts';
import type { Reader } from '../../../db/database.ts';
import { isReplaced } from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { identifiedVersion } from './renewal-info.ts';

/** Throws `malformed` unless the identifier is that of a certificate of the client that has a name of the order. */
export async function requireReplaceable(
  reader: Reader,
  { issuer, client }: AcmeCaller,
  replaces: string,
  identifiers: readonly Identifier[],
): Promise<void> {
  const found = await identifiedVersion(reader, issuer, replaces);
  if (found?.certificate.acme_client_id !== client.id || idOf(found.version.certificate_pem) !== replaces) {
    throw new AcmeProblem('malformed', 'The client has no certificate with the identifier in replaces.');
  }
  const names = parseJson(found.version.domains);
  if (names.some((name) => identifiers.includes(name))) return;
  throw new AcmeProblem('malformed', 'The certificate in replaces has no name of the order.');
}

/** Throws `alreadyReplaced` if another order, which was not in vain, replaces the certificate. */
export async function refuseReplaced(reader: Reader, replaces: string, now: number): Promise<void> {
  if (!(await isReplaced(reader, replaces, now))) return;
  throw new AcmeProblem('alreadyReplaced', 'Another order already replaces the certificate in replaces.');
}

/** The one form of the identifier: a serial number could also be written with another zero in front. */
function idOf(pem: string): string | undefined {
  return renewalInfoId(new X509Certificate(pem).raw);
}
