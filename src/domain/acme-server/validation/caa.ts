/**
 * CAA records (RFC 8659), with the parameters of RFC 8657. They are checked only where a setting names this CA: a
 * private CA usually has no name that zones could use.
 */
import { isIP } from 'node:net';
import { shortened } from '../../../base/printable-text.ts';
import { upwards } from '../../../dns/resolver/dns-name.ts';
import type { CaaRecord } from '../../../dns/resolver/dns-resolver.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { lookedUp } from './dns-lookup.ts';
import { baseName, type ValidationContext } from './validation-context.ts';

export type CaaQuestion = {
  /** With `*.` for a wildcard. */
  readonly identifier: string;
  /** The type of the challenge; undefined where no challenge was needed. */
  readonly method: string | undefined;
  readonly accountUri: string;
};

type Issuance = { readonly domain: string; readonly parameters: ReadonlyMap<string, string> };

const knownTags = new Set([
  'issue',
  'issuewild',
  'iodef',
  'contactemail',
  'contactphone',
  'issuemail',
  'issuevmc',
]);
const maxShownLength = 100;

/** Throws AcmeProblem (`caa`, or `dns` for a failed query) unless this CA may issue. */
export async function checkCaa(
  { validation: { resolver, caaIdentities } }: ValidationContext,
  { identifier, method, accountUri }: CaaQuestion,
  signal: AbortSignal,
): Promise<void> {
  if (caaIdentities.length === 0 || isIP(identifier) !== 0) return;
  for (const name of upwards(baseName(identifier))) {
    const records = await lookedUp(resolver.caa(name), signal);
    if (records.length === 0) continue;
    const unknown = records.find(({ isCritical, tag }) => isCritical && !knownTags.has(tag));
    if (unknown !== undefined) {
      const tag = shortened(unknown.tag, maxShownLength);
      throw refusal(identifier, `${name} has a critical record with the unknown tag ${JSON.stringify(tag)}`);
    }
    const relevant = relevantRecords(records, identifier.startsWith('*.'));
    const permits = ({ value }: CaaRecord) => {
      const { domain, parameters } = parsed(value);
      return (
        caaIdentities.includes(domain) &&
        (parameters.get('accounturi') ?? accountUri) === accountUri &&
        methodsIn(parameters, method).includes(method)
      );
    };
    if (relevant.length === 0 || relevant.some(permits)) return;
    const values = relevant.slice(0, 3).map(({ value }) => JSON.stringify(shortened(value, maxShownLength)));
    throw refusal(
      identifier,
      `${name} permits ${values.join(', ')}; this CA is ${caaIdentities.join(' or ')}`,
    );
  }
}

function refusal(identifier: string, why: string): AcmeProblem {
  return new AcmeProblem('caa', `CAA records forbid to issue for ${identifier}: ${why}`);
}

/** For a wildcard, records for wildcards replace the others (RFC 8659 §4.3). */
function relevantRecords(records: readonly CaaRecord[], isWildcard: boolean): readonly CaaRecord[] {
  const forWildcards = records.filter(({ tag }) => isWildcard && tag === 'issuewild');
  return forWildcards.length > 0 ? forWildcards : records.filter(({ tag }) => tag === 'issue');
}

function methodsIn(
  parameters: ReadonlyMap<string, string>,
  method: string | undefined,
): readonly (string | undefined)[] {
  return parameters.get('validationmethods')?.split(',') ?? [method];
}

/** The value of `issue` (RFC 8659 §4.2). One that is malformed, or has a parameter twice, permits no CA. */
function parsed(value: string): Issuance {
  const [name = '', ...rest] = value.split(';').map((part) => part.trim());
  const parameters = new Map<string, string>();
  for (const part of rest) {
    if (part === '') continue;
    const at = part.indexOf('=');
    const tag = part.slice(0, at).trim().toLowerCase();
    if (at < 0 || !/^[a-z0-9-]+$/.test(tag) || parameters.has(tag)) return { domain: '', parameters };
    parameters.set(tag, part.slice(at + 1).trim());
  }
  return { domain: name.toLowerCase().replace(/\.$/, ''), parameters };
}
