/** Validates tls-alpn-01 challenges (RFC 8737, for addresses RFC 8738). */
import { isIP } from 'node:net';
import type { Identifier } from '../../../base/identifier.ts';
import { validationCertificateFault } from '../../../crypto/x509/acme-validation-check.ts';
import { parseIpAddress } from '../../../net/ip-network.ts';
import { validationHandshake } from '../../../net/validation-connection.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { reach } from './reach.ts';
import { baseName, type ChallengeToValidate, type ValidationContext } from './validation-context.ts';

const protocol = 'acme-tls/1';

/** Throws AcmeProblem unless a server of the identifier presents the certificate of the challenge. */
export async function validateTls(
  context: ValidationContext,
  { identifier, keyAuthorization }: ChallengeToValidate,
  signal: AbortSignal,
): Promise<void> {
  const { world, validation } = context;
  const { guard, ports } = validation;
  const host = baseName(identifier);
  const serverName = isIP(host) === 0 ? host : reverseName(host);
  const target = { host, port: ports.tls, what: `the TLS handshake with ${host}` };
  const { result, at } = await reach(context, target, signal, (address) =>
    validationHandshake({ world, guard }, address, { serverName, protocol }, signal),
  );
  const where = `${host} (${at})`;
  if (result.protocol !== protocol) {
    throw new AcmeProblem('unauthorized', `${where} does not speak ${protocol}`);
  }
  if (result.certificate === undefined) throw new AcmeProblem('tls', `${where} presented no certificate`);
  const fault = validationCertificateFault(result.certificate, host as Identifier, keyAuthorization);
  if (fault === undefined) return;
  throw new AcmeProblem('incorrectResponse', `the certificate of ${where} ${fault}`);
}

/** The server name of an address (RFC 8738 §6), such as `7.2.0.192.in-addr.arpa`. */
export function reverseName(text: string): string {
  const address = parseIpAddress(text);
  if (address === undefined) throw new Error(`${text} is not an address`);
  const { family, bytes } = address;
  if (family === 4) return `${bytes.toReversed().join('.')}.in-addr.arpa`;
  const nibbles = Buffer.from(bytes).toString('hex').split('');
  return `${nibbles.reverse().join('.')}.ip6.arpa`;
}
