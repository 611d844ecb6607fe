/** Validates dns-01 challenges (RFC 8555 §8.4). */
import { hash } from 'node:crypto';
import { shortened } from '../../../base/printable-text.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { lookedUp } from './dns-lookup.ts';
import { baseName, type ChallengeToValidate, type ValidationContext } from './validation-context.ts';

const maxAliases = 8;
const maxShown = 3;
const maxValueLength = 80;

/** Throws AcmeProblem unless a TXT record of the name has the digest of the key authorization. */
export async function validateDns(
  context: ValidationContext,
  { identifier, keyAuthorization }: ChallengeToValidate,
  signal: AbortSignal,
): Promise<void> {
  const name = `_acme-challenge.${baseName(identifier)}`;
  const expected = hash('sha256', keyAuthorization, 'base64url');
  const { values, at } = await textsOf(context, name, signal);
  if (values.includes(expected)) return;
  if (values.length === 0) throw new AcmeProblem('unauthorized', `${at} has no TXT record`);
  const some = values.slice(0, maxShown).map((value) => JSON.stringify(shortened(value, maxValueLength)));
  const more = values.length > maxShown ? ` and ${values.length - maxShown} more` : '';
  throw new AcmeProblem(
    'incorrectResponse',
    `${at} has the TXT ${values.length === 1 ? 'record' : 'records'} ${some.join(', ')}${more} instead of ${expected}`,
  );
}

/**
 * The TXT records of a name. A resolver follows aliases itself; the servers of a zone leave those to other zones alone.
 */
async function textsOf(
  { validation: { resolver } }: ValidationContext,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly values: readonly string[]; readonly at: string }> {
  const path = [name];
  for (let target = name; ; ) {
    const values = await lookedUp(resolver.txt(target), signal);
    const at = path.join(', an alias of ');
    if (values.length > 0) return { values, at };
    const next = await lookedUp(resolver.cname(target), signal);
    if (next === undefined) return { values, at };
    target = next.toLowerCase().replace(/\.$/, '');
    if (path.includes(target)) throw new AcmeProblem('dns', `the CNAME records of ${name} form a loop`);
    path.push(target);
    if (path.length > maxAliases) {
      throw new AcmeProblem('dns', `${name} leads through more than ${maxAliases} CNAME records`);
    }
  }
}
