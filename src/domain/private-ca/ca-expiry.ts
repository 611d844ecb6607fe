/**
 * When the private CAs stop issuing unless a person acts: their roots do not renew themselves, and neither do
 * intermediates if the vault does not hold the key of the root. Announced by doctor, notifications, the log and
 * metrics.
 */
import { day } from '../../base/duration.ts';
import type { Reader } from '../../db/database.ts';
import { longestLifetime } from '../../db/tables/certificates/certificates.ts';
import { type CaCertificateRow, findRoot } from '../../db/tables/issuance/ca-certificates.ts';
import { listIssuers } from '../../db/tables/issuance/issuers.ts';
import type { TimedContext } from '../contexts.ts';
import { holdsKey, issuingIntermediate } from './authorities.ts';
import { importRootKey } from './authority-refusals.ts';
import { settingsOfCa } from './ca-settings.ts';
import { localCaName } from './local-ca.ts';
import type { PrivateCa } from './rotation.ts';

/** Distances to expiry, in milliseconds, of which each makes the announcement one level worse. */
const announcedBefore = [365, 180, 90, 30, 7].map((days) => days * day);
const emergencyBefore = 30 * day;

/** The level of a CA certificate that has expired; 0 is more than a year. */
const expiredLevel = announcedBefore.length + 1;

export type CaUrgency = 'far' | 'near' | 'emergency' | 'over';

/** The expiry of a CA certificate that only a person can replace. */
export type CaExpiry = {
  readonly name: string;
  readonly role: CaCertificateRow['role'];
  /** UTC milliseconds. */
  readonly notAfter: number;
  /** 0 until it is announced, higher is worse. */
  readonly level: number;
  readonly urgency: CaUrgency;
  /** One sentence, and the command that carries it out. */
  readonly advice: string;
  readonly fix: string;
};

/** What the next intermediate needs when the key of the root was exported. */
export const intermediateAdvice =
  'The next intermediate needs the key. Import it, and export it again to create the intermediate and remove the key.';

/** All private CAs by name. */
export async function listPrivateCas(reader: Reader): Promise<PrivateCa[]> {
  return (await listIssuers(reader)).filter(({ type }) => type !== 'acme');
}

/**
 * The root that a private CA issues under, and its intermediate if the key of the root was exported; the root first.
 * Under the root of a company, only the intermediate, because the company replaces its root itself.
 */
export async function caExpiries(
  { db: { reader }, world }: TimedContext,
  { id, name }: PrivateCa,
): Promise<CaExpiry[]> {
  const root = await findRoot(reader, id);
  if (root === undefined) return [];
  const now = world.now();
  const isExternal = root.is_external === 1;
  const roots = isExternal ? [] : [{ name, ...distance(root, now), ...rootAdvice(root, name, now) }];
  if (holdsKey(root)) return roots;
  const settings = await settingsOfCa(reader, id);
  const intermediate = await issuingIntermediate(reader, root, settings);
  if (intermediate === undefined) return roots;
  // One that expires with its root is replaced with it.
  if (!isExternal && intermediate.not_after >= root.not_after) return roots;
  const { level, urgency, ...facts } = distance(intermediate, now);
  const longest = Math.max(settings.lifetime, await longestLifetime(reader, id));
  // Certificates that are valid for longer expire with their intermediate.
  const isShort = level === 0 && intermediate.not_after - now < longest;
  return [
    ...roots,
    {
      ...{ name, ...facts },
      ...(isExternal ? companyAdvice(name) : { advice: intermediateAdvice, fix: importRootKey(name) }),
      ...(isShort ? ({ level: 1, urgency: 'near' } as const) : { level, urgency }),
    },
  ];
}

function distance({ role, not_after: notAfter }: CaCertificateRow, now: number) {
  const left = notAfter - now;
  const level = left <= 0 ? expiredLevel : announcedBefore.filter((limit) => left < limit).length;
  return { role, notAfter, level, urgency: urgencyOf(level, left) };
}

function urgencyOf(level: number, left: number): CaUrgency {
  if (left <= 0) return 'over';
  if (left < emergencyBefore) return 'emergency';
  return level === 0 ? 'far' : 'near';
}

function companyAdvice(name: string): Pick<CaExpiry, 'advice' | 'fix'> {
  return {
    advice: 'The CA of the company issues the next one. Send it a CSR, and import what it returns.',
    fix: `vault ca csr --issuer ${name} --out vault.csr`,
  };
}

function rootAdvice(root: CaCertificateRow, name: string, now: number): Pick<CaExpiry, 'advice' | 'fix'> {
  if (root.not_after <= now) {
    return {
      advice:
        'Clients reject everything that was issued under it. Add a private CA, and install its root on them.',
      fix: 'vault issuer add --type local-ca --name NAME',
    };
  }
  if (!holdsKey(root)) {
    return {
      advice: 'Replace it while clients trust it: import its key, which was exported, and rotate.',
      fix: importRootKey(name),
    };
  }
  return {
    advice: 'Replace it while clients trust it, and install the new root on them.',
    fix: `vault ca rotate${name === localCaName ? '' : ` --issuer ${name}`}`,
  };
}
