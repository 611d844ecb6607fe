/**
 * Making a vault what it shall be: what asks a CA or takes time comes first, and then everything is one transaction, so that
 * a failure or a kill at any moment leaves all of it or nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import { OperatorError } from '../base/operator-error.ts';
import { Secret } from '../base/secret.ts';
import { type ApiKeyToken, createToken } from '../crypto/api-key-token.ts';
import type { Writer } from '../db/database.ts';
import { storeApiKeyChange } from './api-key-change.ts';
import { storeApiKey, storeRevocation } from './api-keys.ts';
import type { Actor } from './audit.ts';
import { storeImport } from './certificate-import.ts';
import { storeCertificateChange } from './certificate-update.ts';
import { eraseCertificate, firstVersion, storeCertificate } from './certificates.ts';
import { dnsProviderSecret, storeDnsProviderChange } from './dns-provider-change.ts';
import { checkDnsProvider, eraseDnsProvider, requireDnsProvider, storeDnsProvider } from './dns-providers.ts';
import { certName, parseInput } from './inputs.ts';
import {
  type CheckedIssuer,
  type CheckedIssuerChange,
  checkIssuer,
  checkIssuerChange,
  eraseIssuer,
  storeIssuer,
  storeIssuerChange,
} from './issuer-changes.ts';
import { localCaName } from './local-ca.ts';
import { type Change, type PlanOptions, planChanges, type WantedState } from './state-plan.ts';
import type { Vault } from './vault.ts';
import { readVaultState } from './vault-state.ts';
import type { VersionMaterial } from './versions.ts';

/** A change with all that has to be known before it is written. */
export type PreparedChange = Change & {
  readonly issuer?: CheckedIssuer;
  readonly issuerChange?: CheckedIssuerChange;
  readonly secret?: Secret;
  readonly first?: VersionMaterial | undefined;
  readonly token?: ApiKeyToken & { readonly raw: Secret<string> };
};

/** Asks the CAs and looks at the credentials of everything that is new or different. Throws as adding each would. */
export async function checkChanges(
  vault: Vault,
  wanted: WantedState,
  changes: readonly Change[],
  signal: AbortSignal,
): Promise<PreparedChange[]> {
  const prepared: PreparedChange[] = [];
  for (const change of changes) prepared.push(await checkChange(vault, wanted, change, signal));
  return prepared;
}

async function checkChange(
  vault: Vault,
  wanted: WantedState,
  change: Change,
  signal: AbortSignal,
): Promise<PreparedChange> {
  const { action, section, name } = change;
  if (action === 'remove') return change;
  if (section === 'issuers') {
    const { input, secrets } = wantedOf(wanted.issuers, name);
    if (action === 'create') return { ...change, issuer: await checkIssuer(vault, input, secrets, signal) };
    const { name: _, ...rest } = input;
    const nothing = { email: null, eab_kid: null, profile: null, preferred_chain: null };
    const changes = { ...nothing, ...rest };
    return { ...change, issuerChange: await checkIssuerChange(vault, name, changes, secrets, signal) };
  }
  if (section === 'dns_providers') {
    const { input, secret: given } = wantedOf(wanted.dns_providers, name);
    // What another type was made of says nothing to this one.
    const isNew = action === 'create' || change.fields.some(({ field }) => field === 'type');
    const kept = isNew ? new Secret(Buffer.from('{}')) : await keptSecret(vault, name);
    const secret = given ?? kept;
    await checkDnsProvider(vault, input.type, secret);
    return { ...change, secret };
  }
  return change;
}

async function keptSecret(vault: Vault, name: string): Promise<Secret> {
  return dnsProviderSecret(vault, await requireDnsProvider(vault.db.reader, name));
}

/** Makes the keys of what is new, and has the private CA issue. Throws OperatorError where `signal` is aborted before its end. */
export async function prepareChanges(
  vault: Vault,
  wanted: WantedState,
  changes: readonly PreparedChange[],
  signal: AbortSignal,
): Promise<PreparedChange[]> {
  const prepared: PreparedChange[] = [];
  for (const change of changes) {
    if (signal.aborted) throw stopped();
    const { action, section, name } = change;
    const certificate = wanted.certificates.get(name);
    if (action !== 'create') prepared.push(change);
    else if (section === 'api_keys') prepared.push({ ...change, token: createToken(vault.world) });
    else if (section === 'certificates' && certificate?.issuer === localCaName && !certificate.disabled) {
      prepared.push({ ...change, first: await firstVersion(vault, certificate) });
    } else prepared.push(change);
  }
  if (signal.aborted) throw stopped();
  return prepared;
}

function stopped(): OperatorError {
  return new OperatorError('it was stopped', { hint: 'Nothing was changed.' });
}

export type ApplyOptions = PlanOptions & {
  /** What comes last in the transaction; where it throws, nothing is changed. */
  readonly beforeCommit?: () => void;
};

/**
 * Makes all changes in one transaction. Throws OperatorError, having changed nothing, where the vault is not as it was when
 * the changes were planned.
 */
export async function applyChanges(
  vault: Vault,
  actor: Actor,
  wanted: WantedState,
  prepared: readonly PreparedChange[],
  { beforeCommit, ...options }: ApplyOptions,
): Promise<void> {
  const renewals = await vault.db.write(async (writer) => {
    const planned = await planChanges(await readVaultState(vault, writer), wanted, options);
    if (!isDeepStrictEqual(planned.map(identityOf), prepared.map(identityOf))) {
      throw new OperatorError('somebody else has changed the vault meanwhile', {
        hint: 'Nothing was changed. Run it again to see what is different now.',
      });
    }
    const queued: number[] = [];
    for (const change of prepared) {
      const renewal = await applyChange(vault, writer, actor, wanted, change);
      if (renewal !== undefined) queued.push(renewal);
    }
    beforeCommit?.();
    return queued;
  });
  if (renewals.length > 0) vault.renewalQueued.ring();
}

function identityOf({ action, section, name, id, fields }: Change) {
  return { action, section, name, id, fields };
}

/** Returns the id of the renewal that is queued, if one is. */
async function applyChange(
  vault: Vault,
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
      const { issuer, issuerChange } = change;
      if (issuer !== undefined) await storeIssuer(vault, writer, actor, issuer);
      else if (issuerChange !== undefined) await storeIssuerChange(vault, writer, actor, issuerChange);
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
      const nothing = { fallback_issuer: null, lifetime: null, profile: null, challenge: null };
      const all = Object.entries({ ...nothing, ...input });
      const changed = all.filter(([key]) => fields.some(({ field }) => field === key));
      return storeCertificateChange(vault, writer, actor, name, Object.fromEntries(changed));
    }
    case 'imported_certificates': {
      const bundle = wanted.imported_certificates.get(name);
      if (bundle === undefined) throw new Error(`there are no files for ${name}`);
      await storeImport(vault, writer, actor, { name: parseInput(certName, name), bundle });
      return undefined;
    }
    case 'api_keys': {
      const input = wantedOf(wanted.api_keys, name);
      if (change.token !== undefined) await storeApiKey(vault, writer, actor, input, change.token);
      else await storeApiKeyChange(vault, writer, actor, change.id ?? 0, input);
      return undefined;
    }
  }
}

async function eraseObject(
  vault: Vault,
  writer: Writer,
  actor: Actor,
  { section, name, id }: Change,
): Promise<void> {
  if (section === 'issuers') await eraseIssuer(vault, writer, actor, name);
  else if (section === 'dns_providers') await eraseDnsProvider(vault, writer, actor, name);
  else if (section === 'api_keys') await storeRevocation(vault, writer, actor, id ?? 0);
  // The keys that count were looked at: those that still name it are revoked or have expired.
  else await eraseCertificate(vault, writer, actor, name, { force: true });
}

function wantedOf<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (object === undefined) throw new Error(`${name} is not wanted`);
  return object;
}
