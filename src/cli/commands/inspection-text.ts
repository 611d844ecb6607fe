/** What `vault inspect` prints for people. */
import { printable } from '../../base/printable-text.ts';
import { parseTimestamp } from '../../base/timestamp.ts';
import type { Inspection, ObjectReport } from '../../crypto/bundles/inspection.ts';
import { daysUntil, facts } from '../terminal/output.ts';

/** How a server spoke TLS. */
export type TlsFacts = { readonly protocol: string | null; readonly cipher: string };

const titles: Readonly<Record<string, string>> = {
  certificate: 'Certificate',
  private_key: 'Private key',
  encrypted_private_key: 'Private key (encrypted)',
  certificate_request: 'Certificate signing request',
  revocation_list: 'Certificate revocation list',
  other: 'Other',
};

const labels: readonly (readonly [field: string, label: string])[] = [
  ['label', 'Type'],
  ['subject', 'Subject'],
  ['issuer', 'Issuer'],
  ['domains', 'Names'],
  ['key_type', 'Key'],
  ['serial', 'Serial'],
  ['not_before', 'Valid from'],
  ['not_after', 'Valid until'],
  ['this_update', 'Issued'],
  ['next_update', 'Next update'],
  ['revoked', 'Revoked'],
  ['fingerprint_sha256', 'SHA-256'],
  ['public_key_pin', 'Key pin'],
  ['is_ca', 'CA'],
];

/** The objects, the chain, what verifies it, and the problems; `now` in UTC milliseconds. */
export function inspectionText(
  name: string,
  tls: TlsFacts | null,
  { objects, chain, key_matches, problems }: Inspection,
  now: number,
): string {
  const spoken = tls === null ? '' : `: ${tls.protocol ?? 'unknown protocol'}, ${tls.cipher}`;
  const counts = new Map<string, number>();
  const sections = objects.map((object) => {
    const count = (counts.get(object.kind) ?? 0) + 1;
    counts.set(object.kind, count);
    const title = titles[object.kind] ?? object.kind;
    const isOnly = objects.filter(({ kind }) => kind === object.kind).length === 1;
    return `${isOnly ? title : `${title} ${count}`}\n${indented(factsOf(object, now))}`;
  });
  const verdicts = [
    ...(chain === null ? [] : ([['Chain', chain.subjects.join(' < ')]] as const)),
    ...(chain === null ? [] : ([['Verified by', verifierOf(chain)]] as const)),
    ...(key_matches === null ? [] : ([['Key matches', key_matches ? 'yes' : 'no']] as const)),
  ];
  const summary = verdicts.length === 0 ? [] : [facts(verdicts)];
  const trouble =
    problems.length === 0 ? [] : [problems.map((one) => `Problem: ${printable(one)}\n`).join('')];
  return [`${printable(name + spoken)}\n`, ...sections, ...summary, ...trouble].join('\n');
}

function verifierOf({ verified_by, publicly_trusted, missing }: NonNullable<Inspection['chain']>): string {
  if (missing !== null) return `nothing: the certificate of ${missing} is missing`;
  return publicly_trusted ? `${verified_by} (publicly trusted)` : `${verified_by} (not publicly trusted)`;
}

function factsOf(object: ObjectReport, now: number): string {
  const pairs = labels.flatMap(([field, label]) => {
    const value = object[field];
    if (value === undefined || value === null || value === false) return [];
    if (field === 'not_after') return [[label, `${value} (${expiryOf(String(value), now)})`] as const];
    if (value === true) return [[label, 'yes'] as const];
    const text = Array.isArray(value) ? value.join(' ') : String(value);
    return text === '' ? [] : [[label, text] as const];
  });
  return pairs.length === 0 ? '' : facts(pairs);
}

function expiryOf(time: string, now: number): string {
  const left = daysUntil(parseTimestamp(time) ?? now, now);
  return left === 'expired' ? left : `in ${left}`;
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
