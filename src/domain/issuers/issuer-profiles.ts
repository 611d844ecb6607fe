/**
 * Adds, changes, shows and removes the profiles of private CAs. Every change shares a transaction with its audit event.
 */
import { formatLifetime } from '../../base/duration.ts';
import type { KeyType } from '../../base/key-type.ts';
import type { Usage } from '../../base/leaf-names.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  certificatesOfProfile,
  deleteProfileRow,
  findProfile,
  type IssuanceProfileRow,
  listProfiles,
  putProfile,
} from '../../db/tables/issuance/issuance-profiles.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { type Actor, record } from '../audit/audit.ts';
import { didYouMean } from '../closest-names.ts';
import type { DatabaseContext, TimedContext, WorldContext } from '../contexts.ts';
import { alikeName } from '../new-names.ts';
import {
  type CreateProfileInput,
  changedProfile,
  openProfile,
  type UpdateProfileInput,
} from '../private-ca/profile-inputs.ts';
import { type NameType, profileColumns, profileIn } from '../private-ca/profile-settings.ts';
import { requireIssuer, sentence } from './issuers.ts';
import { confinedUsers } from './profile-users.ts';

export type ProfileView = {
  issuer: string;
  name: string;
  usage: Usage | null;
  key_types: readonly KeyType[];
  /** In the format of the input. */
  lifetime: string | null;
  max_lifetime: string | null;
  subject: readonly string[];
  name_types: readonly NameType[];
  permit_domains: readonly string[];
  permit_ips: readonly string[];
  created_at: string;
};

/** The private CA of this name. Throws `invalid_request` for an unknown one, and OperatorError for an ACME CA. */
async function requireCa(reader: Reader, name: string): Promise<IssuerRow> {
  const issuer = await requireIssuer(reader, name);
  if (issuer.type !== 'acme') return issuer;
  throw new OperatorError(`issuer ${name} is an ACME CA, which has its own profiles`, {
    hint: 'Only private CAs take profiles. To use one of the CA, pass its name with --profile.',
  });
}

/** The profiles of a private CA by name; those of an ACME CA are not kept here. */
export async function viewProfiles({ db }: DatabaseContext, issuer: string): Promise<ProfileView[]> {
  const { id } = await requireIssuer(db.reader, issuer);
  return (await listProfiles(db.reader, id)).map((row) => view(issuer, row));
}

/** One profile. Throws `not_found`. */
export async function viewProfile(
  { db }: DatabaseContext,
  issuer: string,
  name: string,
): Promise<ProfileView> {
  return view(issuer, await requireRow(db.reader, await requireIssuer(db.reader, issuer), name));
}

function view(issuer: string, row: IssuanceProfileRow): ProfileView {
  const profile = profileIn(issuer, row);
  const { lifetime, maxLifetime } = profile;
  return {
    issuer,
    name: row.name,
    usage: profile.usage ?? null,
    key_types: profile.keyTypes,
    lifetime: lifetime === undefined ? null : formatLifetime(lifetime),
    max_lifetime: maxLifetime === undefined ? null : formatLifetime(maxLifetime),
    subject: profile.subject,
    name_types: profile.nameTypes,
    permit_domains: profile.permitDomains,
    permit_ips: profile.permitIps,
    created_at: formatTimestamp(row.created_at),
  };
}

/** Adds a profile to a private CA. Throws `profile_exists`. */
export async function addProfile(
  vault: TimedContext,
  actor: Actor,
  issuer: string,
  input: CreateProfileInput,
): Promise<void> {
  await vault.db.write((writer) => storeProfile(vault, writer, actor, issuer, input));
}

/** `addProfile` in the caller's transaction. */
export async function storeProfile(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  issuer: string,
  { name, ...settings }: CreateProfileInput,
): Promise<void> {
  const ca = await requireCa(writer, issuer);
  const taken = alikeName(await listProfiles(writer, ca.id), name);
  if (taken !== undefined) {
    throw new Problem('profile_exists', {
      detail: `Issuer ${issuer} already has a profile named ${taken}.`,
      hint: 'Choose another name, or change it with "vault issuer profile update".',
    });
  }
  const now = world.now();
  const columns = profileColumns(changedProfile(openProfile, settings));
  await putProfile(writer, { issuer_id: ca.id, name, created_at: now, ...columns });
  record(writer, { actor, action: 'issuer.profile_create', ...about(issuer, name), detail: settings }, now);
}

/** Changes a profile; that applies from the next issuance of each certificate. Throws `not_found`. */
export async function changeProfile(
  vault: TimedContext,
  actor: Actor,
  issuer: string,
  name: string,
  input: UpdateProfileInput,
): Promise<void> {
  await vault.db.write((writer) => storeProfileChange(vault, writer, actor, issuer, name, input));
}

/** `changeProfile` in the caller's transaction. */
export async function storeProfileChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  issuer: string,
  name: string,
  input: UpdateProfileInput,
): Promise<void> {
  const ca = await requireIssuer(writer, issuer);
  const row = await requireRow(writer, ca, name);
  const columns = profileColumns(changedProfile(profileIn(issuer, row), input));
  await putProfile(writer, { ...row, ...columns });
  const event = { actor, action: 'issuer.profile_update', ...about(issuer, name), detail: input } as const;
  record(writer, event, world.now());
}

/**
 * Removes a profile. Throws `not_found`, and `profile_in_use` while certificates have it, or API keys or administrators
 * are confined to it.
 */
export async function removeProfile(
  vault: TimedContext,
  actor: Actor,
  issuer: string,
  name: string,
): Promise<void> {
  await vault.db.write((writer) => eraseProfile(vault, writer, actor, issuer, name));
}

/** How many users of a profile a message names. */
const maxNamed = 5;

/** `removeProfile` in the caller's transaction. */
export async function eraseProfile(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  issuer: string,
  name: string,
): Promise<void> {
  const ca = await requireIssuer(writer, issuer);
  await requireRow(writer, ca, name);
  const users = await certificatesOfProfile(writer, ca.id, name, maxNamed + 1);
  if (users.length > 0) {
    const shown = users.slice(0, maxNamed).join(', ') + (users.length > maxNamed ? ' …' : '');
    throw new Problem('profile_in_use', {
      detail: `Certificates have the profile ${name} of issuer ${issuer}: ${shown}.`,
      hint: 'Give them another profile, or none, with "vault certificate update --profile".',
    });
  }
  const confined = await confinedUsers(writer, (profile) => profile === `${issuer}/${name}`);
  if (confined !== undefined) {
    throw new Problem('profile_in_use', {
      detail: sentence(
        `${confined.kind} are confined to the profile ${name} of issuer ${issuer}: ${confined.names}`,
      ),
      hint: confined.hint,
    });
  }
  await deleteProfileRow(writer, ca.id, name);
  record(writer, { actor, action: 'issuer.profile_delete', ...about(issuer, name) }, world.now());
}

async function requireRow(reader: Reader, { id, name }: IssuerRow, profile: string) {
  const row = await findProfile(reader, id, profile);
  if (row !== undefined) return row;
  const known = (await listProfiles(reader, id)).map((one) => one.name);
  const others = known.length === 0 ? 'It has no profiles.' : `Use one of: ${known.join(', ')}.`;
  throw new Problem('not_found', {
    detail: `Issuer ${name} has no profile ${JSON.stringify(profile)}.`,
    hint: didYouMean(profile, known, others),
  });
}

function about(issuer: string, profile: string) {
  return { resource: `issuer:${issuer}/${profile}` } as const;
}
