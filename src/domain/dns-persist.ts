/** dns-persist-01 (draft): a record that a person makes once and that stays; the vault shows and checks it. */
import type { AcmeAuthorization, AcmeChallenge } from '../acme/acme-types.ts';
import { dnsPersistValue } from '../acme/challenge-answers.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { Vault } from './vault.ts';

/**
 * Throws OperatorError with the record to create, unless one is there that names the CA and the account. Nothing is
 * ever written or removed.
 */
export async function checkPersistentRecord(
  vault: Vault,
  { identifier, wildcard }: AcmeAuthorization,
  { accountUri, issuerDomainNames: [issuer] }: AcmeChallenge,
  signal: AbortSignal,
): Promise<void> {
  if (accountUri === undefined || issuer === undefined) {
    throw new OperatorError('the CA offers dns-persist-01 without saying what the record must name');
  }
  signal.throwIfAborted();
  const name = `_validation-persist.${identifier.value}`;
  const value = dnsPersistValue(issuer, accountUri, wildcard);
  const seen = await vault.dns.context.resolver.txt(name);
  if (seen.some((text) => parameters(text).join(';') === parameters(value).join(';'))) return;
  throw new OperatorError(`the record ${name} TXT "${value}" is not there`, {
    hint: 'Create it once; it stays, and later renewals need nothing more.',
  });
}

/** The record's parts in an order that does not matter: the issuer first, then the parameters sorted. */
function parameters(text: string): string[] {
  const [issuer = '', ...rest] = text.split(';').map((part) => part.trim());
  return [issuer.toLowerCase(), ...rest.filter((part) => part !== '').sort()];
}
