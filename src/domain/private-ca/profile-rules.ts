/**
 * What a profile makes of a certificate: it fills in what the certificate leaves open, and refuses what contradicts it.
 * The same rules hold when a certificate is created or changed and whenever one is issued, so that a changed profile
 * counts from the next issuance.
 */
import { formatLifetime } from '../../base/duration.ts';
import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { parseSubjectField } from '../../base/leaf-names.ts';
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import { findProfile } from '../../db/tables/issuance/issuance-profiles.ts';
import type { LeafColumns, LeafSettings } from './leaf-settings.ts';
import { leafSettings } from './leaf-settings.ts';
import { forbiddenName, permittedText } from './permitted-names.ts';
import { type NameType, type Profile, profileIn, requireProfile } from './profile-settings.ts';

/** What a certificate asks for; undefined is open. */
export type ProfiledRequest = LeafSettings & {
  readonly domains?: readonly string[] | undefined;
  /** Milliseconds. */
  readonly lifetime?: number | undefined;
  readonly key_type?: string | undefined;
};

/** What it is issued with. */
export type ProfiledLeaf = LeafSettings & { readonly lifetime: number };

const titles: Readonly<Record<NameType, string>> = {
  dns: 'DNS names',
  ip: 'IP addresses',
  email: 'email addresses',
  uri: 'URIs',
};

/**
 * What the certificate is issued with under this profile of a CA whose certificates usually live for `defaultLifetime`.
 * Throws `invalid_request` that names the profile and what it does not permit.
 */
export function inProfile(profile: Profile, asked: ProfiledRequest, defaultLifetime: number): ProfiledLeaf {
  const { domains = [], uris = [], emails = [] } = asked;
  const usage = usageIn(profile, asked);
  const subject = subjectIn(profile, asked);
  const { keyTypes, nameTypes, permitDomains, permitIps } = profile;
  if (
    asked.key_type !== undefined &&
    keyTypes.length > 0 &&
    !keyTypes.some((type) => type === asked.key_type)
  ) {
    throw outside(profile, 'key_type', `the key type ${asked.key_type}`, keyTypes.join(', '));
  }
  const named = [
    ...domains.map((name) => ['domains', isIp(name) ? 'ip' : 'dns', name] as const),
    ...uris.map((name) => ['uris', 'uri', name] as const),
    ...emails.map((name) => ['emails', 'email', name] as const),
  ];
  const other = nameTypes.length === 0 ? undefined : named.find(([, type]) => !nameTypes.includes(type));
  if (other !== undefined) {
    throw outside(profile, other[0], other[2], `only ${nameTypes.map((type) => titles[type]).join(', ')}`);
  }
  const permitted = { permitDomains, permitIps };
  const forbidden = forbiddenName(permitted, { domains, uris, emails, subject, usage });
  if (forbidden !== undefined) {
    throw outside(profile, forbidden.path, forbidden.name, permittedText(permitted));
  }
  return { ...asked, usage, subject, lifetime: lifetimeIn(profile, asked, defaultLifetime) };
}

/** Throws like `inProfile`, and if the issuer has no such profile; an ACME CA checks its profiles itself. */
export async function refuseOutsideProfile(
  reader: Reader,
  issuer: { readonly id: number; readonly name: string; readonly type: string },
  asked: ProfiledRequest & { readonly profile?: string | undefined },
): Promise<void> {
  if (issuer.type === 'acme' || asked.profile === undefined) return;
  inProfile(await requireProfile(reader, issuer, asked.profile), asked, 0);
}

/** The settings of a certificate with what its profile gives it. */
export async function leafInProfile(
  reader: Reader,
  row: LeafColumns & { readonly issuer_id: number | null; readonly profile: string | null },
): Promise<LeafSettings> {
  const own = leafSettings(row);
  const found =
    row.issuer_id === null || row.profile === null
      ? undefined
      : await findProfile(reader, row.issuer_id, row.profile);
  if (found === undefined) return own;
  const profile = profileIn('', found);
  const subject = [...profile.subject, ...fieldsBeside(profile, own.subject)];
  return { ...own, usage: own.usage ?? profile.usage, ...(subject.length > 0 && { subject }) };
}

function usageIn(profile: Profile, { usage = profile.usage }: ProfiledRequest) {
  if (profile.usage !== undefined && usage !== profile.usage) {
    throw outside(profile, 'usage', `the usage ${usage}`, profile.usage);
  }
  return usage;
}

function subjectIn(profile: Profile, { subject }: ProfiledRequest): readonly string[] | undefined {
  const other = (subject ?? []).find((entry) => {
    const fixed = profile.subject.find((held) => fieldOf(held) === fieldOf(entry));
    return fixed !== undefined && fixed !== entry;
  });
  if (other !== undefined) {
    const fixed = profile.subject.find((held) => fieldOf(held) === fieldOf(other)) ?? '';
    throw outside(profile, 'subject', other, fixed);
  }
  const fields = [...profile.subject, ...fieldsBeside(profile, subject)];
  return fields.length === 0 ? undefined : fields;
}

/** The fields that the profile does not set. */
function fieldsBeside(profile: Profile, subject: readonly string[] = []): readonly string[] {
  return subject.filter((entry) => !profile.subject.some((held) => fieldOf(held) === fieldOf(entry)));
}

function fieldOf(entry: string): string {
  return parseSubjectField(entry)?.field ?? entry;
}

function lifetimeIn(profile: Profile, { lifetime }: ProfiledRequest, usual: number): number {
  const { maxLifetime = Number.POSITIVE_INFINITY } = profile;
  if (lifetime !== undefined && lifetime > maxLifetime) {
    const most = `up to ${formatLifetime(maxLifetime)}`;
    throw outside(profile, 'lifetime', `a lifetime of ${formatLifetime(lifetime)}`, most);
  }
  return lifetime ?? profile.lifetime ?? Math.min(usual, maxLifetime);
}

function isIp(name: string): boolean {
  const identifier = parseIdentifier(name);
  return identifier !== undefined && isAddress(identifier);
}

function outside({ issuer, name }: Profile, path: string, what: string, permitted: string): Problem {
  const message = `profile ${name} of issuer ${issuer} does not permit ${what}; it permits ${permitted}`;
  return new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    hint: 'Change the certificate, or the profile with "vault issuer profile update".',
    errors: [{ path, message }],
  });
}
