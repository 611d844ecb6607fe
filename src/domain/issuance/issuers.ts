/** Issuers: who makes versions, how they are looked up, and what each of them could never make. */

import { isAddress } from '../../base/identifier.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import type { Reader } from '../../db/database.ts';
import {
  findAcmeIssuer,
  findIssuer,
  findIssuerById,
  type IssuerRow,
  listIssuers,
} from '../../db/tables/issuers.ts';
import { didYouMean } from '../closest-names.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import type { CreateCertificateInput } from '../inputs.ts';

/** Directories that people may name instead of writing their URL. */
export const knownDirectories: Readonly<Record<string, string>> = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/** What comes from files and switches beside the checked input. */
export type IssuerSecrets = {
  /** The HMAC key of the external account binding, its bytes. */
  readonly eabKey?: Secret | undefined;
  /** PEM; null for the public roots. */
  readonly ca?: string | null | undefined;
  readonly acceptsTerms: boolean;
};

/** A CA that certificates come from. */
export type Issuer = IssuerRow;

/** The issuer of this name. */
export function issuerNamed({ db }: DatabaseContext, name: string): Promise<Issuer | undefined> {
  return findIssuer(db.reader, name);
}

/** The issuer with this id. */
export function issuerWithId({ db }: DatabaseContext, id: number): Promise<Issuer | undefined> {
  return findIssuerById(db.reader, id);
}

/** Until when (UTC milliseconds) an ACME CA wants no orders, and why; undefined where it takes them now. */
export async function pauseOfIssuer(
  { db, world }: TimedContext,
  id: number,
): Promise<{ readonly until: number; readonly reason: string | null } | undefined> {
  const ca = await findAcmeIssuer(db.reader, id);
  if (ca?.paused_until == null || ca.paused_until <= world.now()) return undefined;
  return { until: ca.paused_until, reason: ca.pause_reason };
}

/** The issuer of this name. Throws `invalid_request` that names `path` and offers those that exist. */
export async function requireIssuer(reader: Reader, name: string, path = 'name'): Promise<IssuerRow> {
  const issuer = await findIssuer(reader, name);
  if (issuer !== undefined) return issuer;
  const known = (await listIssuers(reader)).map((row) => row.name);
  throw new Problem('invalid_request', {
    detail: `There is no issuer called ${JSON.stringify(name)}.`,
    hint: Object.hasOwn(knownDirectories, name)
      ? `Add it with "vault issuer add --name ${name}".`
      : didYouMean(name, known, `Use one of: ${known.join(', ')}.`),
    errors: [{ path, message: `there is no issuer called ${JSON.stringify(name)}` }],
  });
}

/** Throws `invalid_request` for a fallback that is no other issuer. */
export function refuseSameFallback(issuer: Pick<IssuerRow, 'id' | 'name'>, fallbackId: number | null): void {
  if (fallbackId !== issuer.id) return;
  const message = `${issuer.name} cannot be its own fallback`;
  throw new Problem('invalid_request', {
    detail: `${message}.`,
    hint: 'Name another with --fallback-issuer, or none at all.',
    errors: [{ path: 'fallback_issuer', message }],
  });
}

/** Throws `invalid_request` for what this issuer could never make. */
export function refuseUnsuitable(
  issuer: Pick<IssuerRow, 'name' | 'type'>,
  wanted: Pick<CreateCertificateInput, 'key_type'> & Partial<CreateCertificateInput>,
): void {
  const refuse = (path: string, message: string) =>
    new Problem('invalid_request', { detail: `${message}.`, errors: [{ path, message }] });
  if (issuer.type !== 'acme') {
    const extras = (['profile', 'challenge'] as const).filter((option) => wanted[option] != null);
    const [extra] = extras;
    if (extra !== undefined) throw refuse(extra, `${issuer.name} is not an ACME CA and knows no ${extra}`);
    return;
  }
  if (wanted.key_type === 'ed25519') {
    throw refuse('key_type', 'ACME CAs issue no certificates for Ed25519 keys; use ec256, ec384 or RSA');
  }
  if (wanted.lifetime !== undefined) {
    throw refuse('lifetime', `${issuer.name} decides on the lifetime itself; choose a profile instead`);
  }
  const wildcard = wanted.domains?.find((domain) => domain.startsWith('*.'));
  if (wildcard !== undefined && wanted.challenge != null && !wanted.challenge.startsWith('dns-')) {
    throw refuse('challenge', `${wildcard} can be proved by dns-01 only`);
  }
  const address = wanted.domains?.find((domain) => isAddress(domain));
  if (address !== undefined && wanted.challenge?.startsWith('dns-') === true) {
    throw refuse('challenge', `${address} can be proved by http-01 or tls-alpn-01 only`);
  }
}
