/** Adds private CAs beside the built-in one, and changes what they permit and their defaults. */

import { Problem } from '../../base/problem.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findRoot } from '../../db/tables/issuance/ca-certificates.ts';
import { type IssuerRow, insertIssuer } from '../../db/tables/issuance/issuers.ts';
import { putPrivateCa } from '../../db/tables/issuance/private-cas.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../contexts.ts';
import { type AuthorityDraft, draftAuthorities, insertAuthorities } from '../private-ca/authorities.ts';
import {
  type CaSettings,
  defaultSettings,
  permittedIn,
  settingsOfCa,
  settingsRow,
} from '../private-ca/ca-settings.ts';
import { leftBehind } from '../private-ca/left-behind.ts';
import { forbiddenName, isNarrower, permittedText } from '../private-ca/permitted-names.ts';
import type { CreatePrivateCaInput, UpdatePrivateCaInput } from '../private-ca/private-ca-inputs.ts';
import { refuseTakenIssuerName, requireIssuer, sentence } from './issuers.ts';

/** A private CA whose keys were generated. */
export type DraftedPrivateCa = {
  readonly input: CreatePrivateCaInput;
  readonly root: AuthorityDraft;
  readonly intermediate: AuthorityDraft;
};

/** Adds a private CA with its own root. Throws OperatorError if the name is taken. */
export async function addPrivateCa(
  vault: SecretsContext,
  actor: Actor,
  input: CreatePrivateCaInput,
): Promise<void> {
  await refuseTakenIssuerName(vault.db.reader, input.name);
  const drafted = await draftPrivateCa(vault, input);
  await vault.db.write((writer) => storePrivateCa(vault, writer, actor, drafted));
}

/** The part of `addPrivateCa` that generates keys. */
export async function draftPrivateCa(
  vault: WorldContext,
  input: CreatePrivateCaInput,
): Promise<DraftedPrivateCa> {
  return { input, ...(await draftAuthorities(vault, settingsOfInput(input))) };
}

/** The part of `addPrivateCa` that writes, in the caller's transaction. */
export async function storePrivateCa(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { input, ...authorities }: DraftedPrivateCa,
): Promise<void> {
  const { name, type, ...detail } = input;
  await refuseTakenIssuerName(writer, name);
  const now = vault.world.now();
  const id = await insertIssuer(writer, { name, type, created_at: now });
  await putPrivateCa(writer, settingsRow(id, settingsOfInput(input)));
  await insertAuthorities(vault, writer, id, authorities);
  const event = {
    actor,
    action: 'issuer.create',
    resource: `issuer:${name}`,
    detail: { type, ...detail },
  } as const;
  record(writer, event, now);
}

/** The settings of a new CA. */
export function settingsOfInput(input: CreatePrivateCaInput): CaSettings {
  return {
    commonName: input.common_name ?? defaultSettings.commonName,
    permitDomains: input.permit_domains ?? defaultSettings.permitDomains,
    permitIps: input.permit_ips ?? defaultSettings.permitIps,
    pathLength: input.path_length ?? defaultSettings.pathLength,
    lifetime: input.lifetime ?? defaultSettings.lifetime,
    keyType: input.key_type ?? defaultSettings.keyType,
  };
}

/** Whether a change may leave certificates behind whose renewals it makes fail. */
export type ChangeOptions = { readonly force: boolean };

/**
 * Changes a private CA, also the built-in one. Other constraints apply from the next issuance; issued certificates
 * stay. Throws `invalid_request` for names that its root does not permit, and unless forced if certificates that it
 * renews have names that it would not permit.
 */
export async function changePrivateCa(
  vault: TimedContext,
  actor: Actor,
  name: string,
  input: UpdatePrivateCaInput,
  { force }: ChangeOptions,
): Promise<void> {
  const issuer = await requireIssuer(vault.db.reader, name);
  const settings = changed(await settingsOfCa(vault.db.reader, issuer.id), input);
  const seen = force ? 0 : await refuseLeftBehind(vault.db.reader, issuer, settings, 0);
  await vault.db.write(async (writer) => {
    // Those that were created meanwhile.
    if (!force) await refuseLeftBehind(writer, issuer, settings, seen);
    await storePrivateCaChange(vault, writer, actor, name, input);
  });
}

/**
 * The part of `changePrivateCa` that writes, in the caller's transaction; it leaves certificates behind as if forced.
 */
export async function storePrivateCaChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
  input: UpdatePrivateCaInput,
): Promise<void> {
  const issuer = await requireIssuer(writer, name);
  const settings = changed(await settingsOfCa(writer, issuer.id), input);
  await refuseWider(writer, issuer, settings);
  await putPrivateCa(writer, settingsRow(issuer.id, settings));
  const event = { actor, action: 'issuer.update', resource: `issuer:${name}`, detail: input } as const;
  record(writer, event, world.now());
}

/** The settings after a change. */
function changed(before: CaSettings, input: UpdatePrivateCaInput): CaSettings {
  const { permit_domains: domains, permit_ips: ips, lifetime, key_type: keyType } = input;
  return {
    ...before,
    ...(domains !== undefined && { permitDomains: domains ?? [] }),
    ...(ips !== undefined && { permitIps: ips ?? [] }),
    ...(lifetime !== undefined && { lifetime: lifetime ?? defaultSettings.lifetime }),
    ...(keyType !== undefined && { keyType: keyType ?? defaultSettings.keyType }),
  };
}

/**
 * Throws `invalid_request` if the root does not permit all these names: no intermediate can permit more than its root.
 */
async function refuseWider(reader: Reader, issuer: IssuerRow, settings: CaSettings): Promise<void> {
  const root = await findRoot(reader, issuer.id);
  const permitted = permittedIn(root?.constraints ?? null);
  if (isNarrower(settings, permitted)) return;
  const message = `the root of ${issuer.name} permits only ${permittedText(permitted)}`;
  throw new Problem('invalid_request', {
    detail: sentence(message),
    hint: 'Permit only names within these, or add another private CA.',
    errors: [{ path: 'permit_domains', message }],
  });
}

/**
 * Throws `invalid_request` if certificates with an id above `after` use the issuer for names that these settings do not
 * permit. Returns the last id that was checked.
 */
async function refuseLeftBehind(
  reader: Reader,
  issuer: IssuerRow,
  settings: CaSettings,
  after: number,
): Promise<number> {
  const { shown, last } = await leftBehind(
    reader,
    issuer.id,
    (names) => forbiddenName(settings, names),
    after,
  );
  if (shown === undefined) return last;
  const message = `certificates that ${issuer.name} renews have other names: ${shown}`;
  throw new Problem('invalid_request', {
    detail: sentence(message),
    hint: 'Permit these names too, or move the certificates to another issuer first. With force, their renewals fail.',
    errors: [{ path: 'permit_domains', message }],
  });
}
