/**
 * Makes a vault hold what a document says. What asks a CA comes first; then the changes follow in their order, in short
 * transactions between which others get the write lock. A run that was stopped is resumed by the next one, whose plan
 * has just the changes that are missing.
 */
import { isDeepStrictEqual } from 'node:util';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { describeFileError } from '../../base/system-error.ts';
import type { Writer } from '../../db/database.ts';
import { findAcmeClientByName } from '../../db/tables/acme-server/acme-clients.ts';
import { storeApiKeyChange } from '../access/api-key-change.ts';
import { storeApiKey, storeRevocation } from '../access/api-keys.ts';
import { storeAcmeClientChange } from '../acme-server/clients/acme-client-change.ts';
import type { CreateAcmeClientInput } from '../acme-server/clients/acme-client-inputs.ts';
import { createAcmeClientKey } from '../acme-server/clients/acme-client-keys.ts';
import { storeAcmeClient, storeClientRevocation } from '../acme-server/clients/acme-clients.ts';
import type { Actor } from '../audit/audit.ts';
import { storeImport } from '../certificates/certificate-import.ts';
import { storeCertificateChange } from '../certificates/certificate-update.ts';
import { eraseCertificate, storeCertificate } from '../certificates/certificates.ts';
import type { SealingContext, SecretsContext, WorldContext } from '../contexts.ts';
import { eraseDeployTarget } from '../deploy-targets/deploy-targets.ts';
import { storeDnsProviderChange } from '../dns-providers/dns-provider-change.ts';
import { eraseDnsProvider, storeDnsProvider } from '../dns-providers/dns-providers.ts';
import { certName } from '../input-strings.ts';
import { parseInput } from '../inputs.ts';
import { eraseIssuer, storeIssuer, storeIssuerChange } from '../issuers/issuer-changes.ts';
import { storePrivateCa, storePrivateCaChange } from '../issuers/private-issuers.ts';
import { changeLabels } from '../labels/certificate-labelling.ts';
import type { QueueContext } from '../renewals/renewal-queue.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { changedSettings } from './certificate-state.ts';
import { applyDeployTarget } from './deploy-target-application.ts';
import { type Change, planSame } from './state-plan.ts';
import { type PreparedChange, prepareChanges, wantedOf } from './state-preparation.ts';
import { readVaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

export type ApplyOptions = {
  /** Aborting it stops the run before the next transaction. */
  readonly signal: AbortSignal;
  /** Called before each transaction, without the lock, with the changes that it makes. */
  readonly beforeStep?: (step: readonly PreparedChange[]) => void;
  /** Called last in each transaction; where it throws, none of the transaction's changes are made. */
  readonly beforeCommit?: (step: readonly PreparedChange[]) => void;
  readonly afterStep?: (step: readonly PreparedChange[]) => Promise<void>;
};

/** A plan of up to so many changes is one transaction: all of it or nothing. */
const changesAtOnce = 50;

/** A transaction that held the write lock for longer is followed by a smaller one. */
const maxHoldMs = 25;

/**
 * Between two transactions: longer than others pause between two tries to get the lock, so that each of them finds it
 * free.
 */
const pauseMs = 45;

/**
 * Makes the changes in their order, at most 50 in a transaction. Throws OperatorError, which says how many changes were
 * made, where the vault is not as it was when they were planned, a change fails, or `signal` is aborted.
 */
export async function applyChanges(
  vault: SecretsContext & QueueContext,
  actor: Actor,
  wanted: WantedState,
  checked: readonly PreparedChange[],
  options: ApplyOptions,
): Promise<void> {
  let size = changesAtOnce;
  let done = 0;
  try {
    while (done < checked.length) {
      const changes = checked.slice(done, done + size);
      const step = await prepareChanges(vault, wanted, changes, options.signal);
      options.beforeStep?.(step);
      const heldMs = await applyStep(vault, actor, wanted, step, options);
      done += step.length;
      await options.afterStep?.(step);
      if (heldMs > maxHoldMs) size = Math.ceil(size / 2);
      else if (2 * heldMs < maxHoldMs) size = Math.min(changesAtOnce, 2 * size);
      if (done < checked.length) await vault.world.sleep(Math.max(pauseMs, heldMs));
    }
  } catch (error) {
    throw incomplete(error, options.signal, done, checked.length);
  }
}

function incomplete(error: unknown, signal: AbortSignal, done: number, all: number): unknown {
  const isStopped = signal.aborted && error === signal.reason;
  if (done === 0)
    return isStopped
      ? new OperatorError('stopped before the first change', { hint: 'Nothing was changed.' })
      : error;
  const reason = error instanceof Problem ? error.body.detail : describeFileError(error);
  return new OperatorError(
    `${isStopped ? 'stopped' : 'failed'} after ${done} of ${all} changes${isStopped ? '' : `: ${reason}`}`,
    { hint: 'These changes stay. Run the command again to make the others.', cause: error },
  );
}

/** Makes the changes in one transaction. Returns for how long that held the write lock, in milliseconds. */
async function applyStep(
  vault: SecretsContext & QueueContext,
  actor: Actor,
  wanted: WantedState,
  step: readonly PreparedChange[],
  { beforeCommit }: ApplyOptions,
): Promise<number> {
  const { world } = vault;
  let since = 0;
  const renewals = await vault.db.write(async (writer) => {
    since = world.now();
    await requireUnchanged(vault, writer, wanted, step);
    const queued: number[] = [];
    for (const change of step) {
      const renewal = await applyChange(vault, writer, actor, wanted, change);
      if (renewal !== undefined) queued.push(renewal);
    }
    beforeCommit?.(step);
    return queued;
  });
  if (renewals.length > 0) vault.renewalQueued.notify();
  return world.now() - since;
}

/** Throws where the objects of this step are not as they were when the changes were planned. */
async function requireUnchanged(
  vault: SealingContext,
  writer: Writer,
  wanted: WantedState,
  step: readonly Change[],
): Promise<void> {
  const names = [...new Set(step.map(({ name }) => name))];
  const keyIds = step.flatMap(({ id }) => (id === undefined ? [] : [id]));
  const state = await readVaultState(vault, writer, { names, keyIds });
  const same = await planSame(state, wanted, step);
  if (isDeepStrictEqual(same.map(identityOf), step.map(identityOf))) return;
  throw new OperatorError('someone else changed the vault during this run', {
    hint: 'Nothing was changed. Run the command again to see the current differences.',
  });
}

function identityOf({ action, section, name, id, fields }: Change) {
  return { action, section, name, id, fields };
}

/** Returns the id of the renewal that is queued, if one is. */
async function applyChange(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  wanted: WantedState,
  change: PreparedChange,
): Promise<number | undefined> {
  if (change.action === 'remove') {
    await eraseObject(vault, writer, actor, change);
    return undefined;
  }
  const { action, section, name, fields } = change;
  switch (section) {
    case 'issuers': {
      const { issuer, issuerChange, privateCa } = change;
      const wantedCa = wantedOf(wanted.issuers, name);
      if (issuer !== undefined) await storeIssuer(vault, writer, actor, issuer);
      else if (issuerChange !== undefined) await storeIssuerChange(vault, writer, actor, issuerChange);
      else if (privateCa !== undefined) await storePrivateCa(vault, writer, actor, privateCa);
      else if ('privateCa' in wantedCa) {
        const { permit_domains = [], permit_ips = [], lifetime = null, key_type = null } = wantedCa.privateCa;
        const settings = { permit_domains, permit_ips, lifetime, key_type };
        await storePrivateCaChange(vault, writer, actor, name, settings);
      }
      return undefined;
    }
    case 'dns_providers': {
      const { input } = wantedOf(wanted.dns_providers, name);
      const { secret } = change;
      if (secret === undefined) throw new Error(`the DNS provider ${name} was not checked`);
      const isOther = fields.some(({ field }) => field === 'secret' || field === 'type');
      if (action === 'create') await storeDnsProvider(vault, writer, actor, input, secret);
      else await storeDnsProviderChange(vault, writer, actor, input, { secret, isOther });
      return undefined;
    }
    case 'certificates': {
      const input = wantedOf(wanted.certificates, name);
      if (action === 'create') return storeCertificate(vault, writer, actor, input, change.first);
      return storeCertificateChange(vault, writer, actor, name, changedSettings(input, change));
    }
    case 'imported_certificates': {
      const { bundle, labels } = wantedOf(wanted.imported_certificates, name);
      const isOther = fields.some(({ field }) => field === 'fingerprint_sha256');
      if (bundle !== undefined && isOther)
        await storeImport(vault, writer, actor, { name: parseInput(certName, name), bundle, labels });
      if (action === 'update')
        await changeLabels(vault, writer, actor, await requireCertificate(writer, name), labels);
      return undefined;
    }
    case 'deploy_targets':
      await applyDeployTarget(vault, writer, actor, wantedOf(wanted.deploy_targets, name), change);
      return undefined;
    case 'acme_clients':
      await applyAcmeClient(vault, writer, actor, wantedOf(wanted.acme_clients, name));
      return undefined;
    case 'api_keys': {
      const input = wantedOf(wanted.api_keys, name);
      if (change.token !== undefined) await storeApiKey(vault, writer, actor, input, change.token);
      else await storeApiKeyChange(vault, writer, actor, change.id ?? 0, input);
      return undefined;
    }
  }
}

async function eraseObject(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { section, name, id }: Change,
): Promise<void> {
  if (section === 'issuers') await eraseIssuer(vault, writer, actor, name);
  else if (section === 'dns_providers') await eraseDnsProvider(vault, writer, actor, name);
  else if (section === 'deploy_targets') await eraseDeployTarget(vault, writer, actor, name);
  else if (section === 'acme_clients') await removeAcmeClient(vault, writer, actor, name);
  else if (section === 'api_keys') await storeRevocation(vault, writer, actor, id ?? 0);
  // Active keys were checked before: those that still name it are revoked or expired.
  else await eraseCertificate(vault, writer, actor, name, { force: true });
}

/** Creates the client, whose key the next rotation shows, or changes it. */
async function applyAcmeClient(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  input: CreateAcmeClientInput,
): Promise<void> {
  const found = await findAcmeClientByName(writer, input.name);
  if (found === undefined) await storeAcmeClient(vault, writer, actor, input, createAcmeClientKey(vault));
  else await storeAcmeClientChange(vault, writer, actor, found.id, input);
}

/** Revokes the client of this name. */
async function removeAcmeClient(
  vault: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
): Promise<void> {
  const found = await findAcmeClientByName(writer, name);
  if (found !== undefined) await storeClientRevocation(vault, writer, actor, found.id);
}
