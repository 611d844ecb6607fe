/** Adding, changing and removing deploy targets. */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type DeployTargetRow,
  deleteDeployTargetRow,
  deleteTargetCertificates,
  findDeployTarget,
  hasTargetCertificates,
  insertDeployTarget,
  insertTargetCertificates,
  listDeployTargets,
  listTargetCertificates,
  updateDeployTarget,
} from '../../db/tables/deploy-targets.ts';
import type { TargetType } from '../../targets/target.ts';
import { targetTypes } from '../../targets/target-types.ts';
import { type Actor, record } from '../audit/audit.ts';
import { didYouMean } from '../closest-names.ts';
import type {
  KeyringContext,
  SealingContext,
  SecretsContext,
  TimedContext,
  WorldContext,
} from '../contexts.ts';
import { alikeName } from '../new-names.ts';
import { readSettings } from '../notifications/channel-settings.ts';
import { openFor, sealFor, targetSettingsOwner } from '../sealed-secrets.ts';
import { certificateIds } from '../versions/certificate-lookup.ts';
import type { CreateDeployTargetInput, UpdateDeployTargetInput } from './deploy-target-inputs.ts';

/** The maximum number of targets of a vault, and of certificates on all of them together. */
export const maxDeployTargets = 1000;
export const maxDeployedCertificates = 10_000;

/** The target of this name. Throws `deploy_target_not_found` that suggests similar names. */
export async function requireDeployTarget(reader: Reader, name: string): Promise<DeployTargetRow> {
  const row = await findDeployTarget(reader, name);
  if (row !== undefined) return row;
  const known = (await listDeployTargets(reader)).map((target) => target.name);
  throw new Problem('deploy_target_not_found', {
    detail: `Unknown deploy target "${name}".`,
    hint: didYouMean(name, known, 'Try: vault deploy-target list'),
  });
}

/**
 * Adds a target; `settings` is YAML or JSON for its type, which is checked and sealed. Its certificates are due
 * immediately. Throws OperatorError and Problem before anything is stored.
 */
export async function addDeployTarget(
  vault: SecretsContext,
  actor: Actor,
  input: CreateDeployTargetInput,
  settings: Secret,
): Promise<void> {
  const checked = await checkedTargetSettings(input.type, settings);
  await vault.db.write((writer) => storeDeployTarget(vault, writer, actor, input, checked));
}

/** Checked settings as JSON with all defaults, from YAML or JSON. Throws OperatorError, which contains no value. */
export async function checkedTargetSettings(type: string, settings: Secret): Promise<Secret> {
  const config = await readSettings(requireType(type), settings);
  return new Secret(Buffer.from(JSON.stringify(config)));
}

/** The part of `addDeployTarget` that writes, in the caller's transaction; `settings` were checked. */
export async function storeDeployTarget(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  input: CreateDeployTargetInput,
  settings: Secret,
): Promise<void> {
  const type = requireType(input.type);
  const config = configIn(settings);
  const existing = await listDeployTargets(writer);
  const taken = alikeName(existing, input.name);
  if (taken !== undefined) {
    throw new Problem('deploy_target_exists', {
      detail: `A deploy target named ${taken} already exists.`,
      hint: `Choose another name, or change the existing one.\n  Try: vault deploy-target update --name ${taken}`,
    });
  }
  if (existing.length >= maxDeployTargets) {
    throw new Problem('too_many_deploy_targets', {
      detail: `The vault has ${maxDeployTargets} deploy targets, the maximum.`,
    });
  }
  const now = vault.world.now();
  const host = type.host(config);
  const { name, certificates } = input;
  const row = { name, type: type.type, host, created_at: now, changed_at: now };
  const id = await insertDeployTarget(writer, { ...row, sealed_settings: Buffer.alloc(0) });
  await updateDeployTarget(writer, id, { sealed_settings: await sealed(vault, writer, id, settings) });
  await addCertificates(writer, { id, type, config }, certificates, now);
  const detail = { type: type.type, host, certificates };
  record(writer, { actor, action: 'deploy_target.create', ...resourceOf(name), detail }, now);
}

/**
 * Changes a target. New settings replace all old ones, credentials included, and make all of its certificates due: they
 * may go elsewhere. Throws OperatorError and Problem.
 */
export async function changeDeployTarget(
  vault: SecretsContext,
  actor: Actor,
  name: string,
  changes: UpdateDeployTargetInput,
  settings?: Secret,
): Promise<void> {
  const known = await requireDeployTarget(vault.db.reader, name);
  const checked = settings && (await checkedTargetSettings(known.type, settings));
  await vault.db.write(async (writer) => {
    const { id } = await requireDeployTarget(writer, name);
    // Removed meanwhile, and added again.
    if (id !== known.id) throw new Problem('deploy_target_not_found');
    await storeDeployTargetChange(vault, writer, actor, name, changes, checked);
  });
}

/** The part of `changeDeployTarget` that writes, in the caller's transaction; new settings were checked. */
export async function storeDeployTargetChange(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  name: string,
  { certificates }: UpdateDeployTargetInput,
  settings: Secret | undefined,
): Promise<void> {
  const { id, ...before } = await requireDeployTarget(writer, name);
  const type = requireType(before.type);
  const now = vault.world.now();
  const config = settings === undefined ? openTargetSettings(vault, { id, ...before }) : configIn(settings);
  const held = await listTargetCertificates(writer, id);
  const heldNames: readonly string[] = held.map((row) => row.certificate);
  const wanted: readonly string[] = certificates ?? heldNames;
  const added = wanted.filter((one) => !heldNames.includes(one));
  const removed = heldNames.filter((one) => !wanted.includes(one));
  if (added.length + removed.length === 0 && settings === undefined) return;
  // What is known of the old place says nothing about the new one.
  const isLeft = (one: string) => settings !== undefined || removed.includes(one);
  const left = held.filter((row) => isLeft(row.certificate)).map((row) => row.certificate_id);
  await deleteTargetCertificates(writer, id, left);
  await addCertificates(writer, { id, type, config }, settings === undefined ? added : wanted, now);
  const host = type.host(config);
  const sealed_settings = settings && (await sealed(vault, writer, id, settings));
  await updateDeployTarget(writer, id, {
    host,
    changed_at: now,
    ...(sealed_settings && { sealed_settings }),
  });
  const detail = {
    ...(added.length > 0 && { added }),
    ...(removed.length > 0 && { removed }),
    ...(settings && { host, settings: 'replaced' }),
  };
  record(writer, { actor, action: 'deploy_target.update', ...resourceOf(name), detail }, now);
}

/** Removes a target with its settings; what is installed stays where it is. Throws `deploy_target_not_found`. */
export async function removeDeployTarget(vault: TimedContext, actor: Actor, name: string): Promise<void> {
  await vault.db.write((writer) => eraseDeployTarget(vault, writer, actor, name));
}

/** `removeDeployTarget` in the caller's transaction. */
export async function eraseDeployTarget(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
): Promise<void> {
  const { id } = await requireDeployTarget(writer, name);
  await deleteDeployTargetRow(writer, id);
  record(writer, { actor, action: 'deploy_target.delete', ...resourceOf(name) }, world.now());
}

/** The settings of a target, as its type reads them. */
export function openTargetSettings(
  vault: KeyringContext,
  { id, sealed_settings }: Pick<DeployTargetRow, 'id' | 'sealed_settings'>,
): unknown {
  return configIn(openFor(vault, targetSettingsOwner(id), sealed_settings));
}

/** The type of this name. Throws OperatorError that suggests similar ones. */
export function requireType(type: string): TargetType {
  const known = targetTypes.get(type);
  if (known !== undefined) return known;
  const types = [...targetTypes.keys()];
  throw new OperatorError(`unknown deploy target type "${type}"`, {
    hint: didYouMean(type, types, `Use one of: ${types.join(', ')}.`),
  });
}

/** Throws `invalid_request` for a name that does not exist. */
async function addCertificates(
  writer: Writer,
  { id, type, config }: { readonly id: number; readonly type: TargetType; readonly config: unknown },
  names: readonly string[],
  now: number,
): Promise<void> {
  const ids = await certificateIds(writer, names);
  if (ids.size > 0 && (await hasTargetCertificates(writer, maxDeployedCertificates - ids.size + 1))) {
    throw new Problem('too_many_deploy_targets', {
      detail: `The deploy targets have ${maxDeployedCertificates} certificates together, the maximum.`,
    });
  }
  const rows = [...ids].map(([name, certificateId]) => ({
    ...{ deploy_target_id: id, certificate_id: certificateId, due_at: now },
    destination: type.destination(config, name),
  }));
  await insertTargetCertificates(writer, rows);
}

function configIn(settings: Secret): unknown {
  return JSON.parse(settings.expose().toString('utf8'));
}

function sealed(vault: SealingContext, writer: Writer, id: number, settings: Secret): Promise<Buffer> {
  return sealFor(vault, writer, targetSettingsOwner(id), settings);
}

function resourceOf(name: string): { readonly resource: string } {
  return { resource: `deploy-target:${name}` };
}
