/**
 * What is done about changes of a plan before the write lock is taken: CAs are asked, credentials checked, keys
 * generated, first versions issued.
 */
import { Secret } from '../../base/secret.ts';
import { type ApiKeyToken, createToken } from '../../crypto/secrets/api-key-token.ts';
import { firstVersion } from '../certificates/certificates.ts';
import type { DatabaseContext, KeyringContext, SecretsContext } from '../contexts.ts';
import { dnsProviderSecret } from '../dns-providers/dns-provider-change.ts';
import { checkDnsProvider, requireDnsProvider } from '../dns-providers/dns-providers.ts';
import type { NewCertificate } from '../inputs.ts';
import type { CaContext, DnsProviderContext } from '../issuance-contexts.ts';
import {
  type CheckedIssuer,
  type CheckedIssuerChange,
  checkIssuer,
  checkIssuerChange,
} from '../issuers/issuer-changes.ts';
import { issuerNamed } from '../issuers/issuers.ts';
import { type DraftedPrivateCa, draftPrivateCa } from '../issuers/private-issuers.ts';
import type { VersionMaterial } from '../versions/versions.ts';
import type { Change } from './state-plan.ts';
import type { WantedState } from './wanted-state.ts';

/** A change with all that has to be known before it is written. */
export type PreparedChange = Change & {
  readonly issuer?: CheckedIssuer;
  readonly issuerChange?: CheckedIssuerChange;
  readonly privateCa?: DraftedPrivateCa;
  readonly secret?: Secret;
  readonly first?: VersionMaterial | undefined;
  readonly token?: ApiKeyToken & { readonly raw: Secret<string> };
};

/** Asks the CAs and looks at the credentials of everything that is new or different. Throws as adding each would. */
export async function checkChanges(
  vault: DnsProviderContext & CaContext,
  wanted: WantedState,
  changes: readonly Change[],
  signal: AbortSignal,
): Promise<PreparedChange[]> {
  const prepared: PreparedChange[] = [];
  for (const change of changes) prepared.push(await checkChange(vault, wanted, change, signal));
  return prepared;
}

async function checkChange(
  vault: DnsProviderContext & CaContext,
  wanted: WantedState,
  change: Change,
  signal: AbortSignal,
): Promise<PreparedChange> {
  const { action, section, name } = change;
  if (action === 'remove') return change;
  if (section === 'issuers') {
    const issuer = wantedOf(wanted.issuers, name);
    if ('privateCa' in issuer) return change;
    const { input, secrets } = issuer;
    if (action === 'create') return { ...change, issuer: await checkIssuer(vault, input, secrets, signal) };
    const { name: _, ...rest } = input;
    const nothing = { email: null, eab_kid: null, profile: null, preferred_chain: null };
    const changes = { ...nothing, ...rest };
    return { ...change, issuerChange: await checkIssuerChange(vault, name, changes, secrets, signal) };
  }
  if (section === 'dns_providers') {
    const { input, secret: given } = wantedOf(wanted.dns_providers, name);
    // Settings of another type do not apply to this one.
    const isNew = action === 'create' || change.fields.some(({ field }) => field === 'type');
    const kept = isNew ? new Secret(Buffer.from('{}')) : await keptSecret(vault, name);
    const secret = given ?? kept;
    await checkDnsProvider(vault, input.type, secret);
    return { ...change, secret };
  }
  return change;
}

async function keptSecret(vault: DatabaseContext & KeyringContext, name: string): Promise<Secret> {
  return dnsProviderSecret(vault, await requireDnsProvider(vault.db.reader, name));
}

/** Generates keys and issues from the private CA: slow work that needs no lock. */
export async function prepareChanges(
  vault: SecretsContext,
  wanted: WantedState,
  changes: readonly PreparedChange[],
  signal: AbortSignal,
): Promise<PreparedChange[]> {
  const prepared: PreparedChange[] = [];
  for (const change of changes) {
    signal.throwIfAborted();
    const { action, section, name } = change;
    const certificate = wanted.certificates.get(name);
    if (action !== 'create') prepared.push(change);
    else if (section === 'api_keys') prepared.push({ ...change, token: createToken(vault.world) });
    else if (section === 'issuers') prepared.push(await draftIssuer(vault, wanted, change));
    else if (certificate !== undefined && section === 'certificates') {
      prepared.push({ ...change, first: await firstOf(vault, certificate) });
    } else prepared.push(change);
  }
  signal.throwIfAborted();
  return prepared;
}

async function draftIssuer(
  vault: SecretsContext,
  wanted: WantedState,
  change: PreparedChange,
): Promise<PreparedChange> {
  const issuer = wantedOf(wanted.issuers, change.name);
  if (!('privateCa' in issuer)) return change;
  return { ...change, privateCa: await draftPrivateCa(vault, issuer.privateCa) };
}

/** The first version, if a private CA that the vault has already issues it; a new one issues it as a renewal. */
async function firstOf(
  vault: SecretsContext,
  certificate: NewCertificate,
): Promise<VersionMaterial | undefined> {
  const issuer = await issuerNamed(vault, certificate.issuer);
  const isIssuedNow = issuer !== undefined && issuer.type !== 'acme' && certificate.disabled !== true;
  return isIssuedNow ? firstVersion(vault, issuer, certificate) : undefined;
}

/** The object of this name that the document wants. */
export function wantedOf<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (object === undefined) throw new Error(`${name} is not wanted`);
  return object;
}
