/**
 * The changes that lead from the state of a vault to the desired state, field by field in the terms of the document.
 */
import { encodePem } from '../../crypto/pem.ts';
import { sameSecrets } from '../../crypto/secrets/constant-time.ts';
import { certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import type { Definition, FieldValue } from './definition.ts';
import { type Section, sections } from './desired-sections.ts';
import type { Held, VaultState } from './vault-state.ts';
import { wantedDefinition } from './wanted-definition.ts';
import type { WantedState } from './wanted-state.ts';

/** A field whose value is a secret has words in place of it. */
export type FieldChange = { readonly field: string; readonly from?: FieldValue; readonly to?: FieldValue };

export type Change = {
  readonly action: 'create' | 'update' | 'remove';
  readonly section: Section;
  readonly name: string;
  /** Of an API key that is there. */
  readonly id?: number;
  readonly fields: readonly FieldChange[];
};

export type PlanOptions = {
  /** Whether what the document does not name is removed. */
  readonly others: 'stay' | 'go';
  /** Certificates that are never removed, nor their issuers: the vault's own. */
  readonly protectedCertificates: readonly string[];
};

/**
 * The changes in the order in which they are made: first what is new or different, in the order of the sections, then
 * what goes, the other way round. `wanted` has passed `stateIssues`.
 */
export async function planChanges(
  state: VaultState,
  wanted: WantedState,
  options: PlanOptions,
): Promise<Change[]> {
  const made: Change[] = [];
  const gone: Change[] = [];
  for (const section of sections) {
    for (const name of wanted[section].keys()) {
      const change = await changeOf(state, wanted, section, name);
      if (change !== undefined) made.push(change);
    }
    if (options.others === 'go') gone.unshift(...removals(state, wanted, section, options));
  }
  return [...made, ...gone];
}

/** Plans the objects of these changes again; the result equals the changes if the objects are unchanged. */
export async function planSame(
  state: VaultState,
  wanted: WantedState,
  changes: readonly Change[],
): Promise<Change[]> {
  const now = { ...state, api_keys: keysById(state.api_keys, changes) };
  const same: Change[] = [];
  for (const { action, section, name } of changes) {
    const held = now[section].get(name);
    const change =
      action !== 'remove'
        ? await changeOf(now, wanted, section, name)
        : held && held.isOver !== true && removal(section, name, held);
    if (change) same.push(change);
  }
  return same;
}

/**
 * The keys under the names that the changes know: a key that shares its name may have become the only one, but keeps
 * its id.
 */
function keysById(keys: VaultState['api_keys'], changes: readonly Change[]): VaultState['api_keys'] {
  const byId = new Map([...keys.values()].map((held) => [held.id, held]));
  const named = new Map(keys);
  for (const { section, name, id } of changes) {
    const held = section === 'api_keys' && id !== undefined ? byId.get(id) : undefined;
    if (held !== undefined) named.set(name, held);
  }
  return named;
}

async function changeOf(
  state: VaultState,
  wanted: WantedState,
  section: Section,
  name: string,
): Promise<Change | undefined> {
  const held = heldFor(state, section, name);
  const definition = wantedDefinition({ state, wanted }, section, name, held);
  const fields = [
    // From then on the key has the name that tells it apart in the document.
    ...(held?.sharedName === undefined ? [] : [{ field: 'name', from: held.sharedName, to: name }]),
    ...differences(held?.definition ?? {}, definition),
    ...secretChange(wanted, section, name, held),
    ...(await materialChange(wanted, section, name, held)),
  ];
  const id = held?.id === undefined ? {} : { id: held.id };
  if (held === undefined) return { action: 'create', section, name, fields };
  return fields.length === 0 ? undefined : { action: 'update', section, name, ...id, fields };
}

/** An imported certificate that the document gives an issuer is the same certificate. */
function heldFor(state: VaultState, section: Section, name: string): Held | undefined {
  const held = state[section].get(name);
  return held === undefined && section === 'certificates' ? state.imported_certificates.get(name) : held;
}

function removals(
  state: VaultState,
  wanted: WantedState,
  section: Section,
  { protectedCertificates }: PlanOptions,
): Change[] {
  const isCertificate = section === 'certificates' || section === 'imported_certificates';
  const issuers = section === 'issuers' ? issuersOfProtected(state, wanted, protectedCertificates) : [];
  const stays = (name: string) =>
    wanted[section].has(name) ||
    issuers.includes(name) ||
    (section === 'issuers' && name === localCaName) ||
    (isCertificate &&
      (protectedCertificates.includes(name) ||
        wanted.certificates.has(name) ||
        wanted.imported_certificates.has(name)));
  return [...state[section]]
    .filter(([name]) => !stays(name))
    .filter(([, { isOver }]) => isOver !== true)
    .map(([name, held]) => removal(section, name, held));
}

function removal(section: Section, name: string, { id, definition }: Held): Change {
  const isPrivateCa = section === 'issuers' && definition.type === 'local-ca';
  const fields = isPrivateCa ? [{ field: 'type', from: 'local-ca' }] : [];
  return { action: 'remove', section, name, ...(id !== undefined && { id }), fields };
}

/** The issuers of certificates that stay although the document does not name them. */
function issuersOfProtected(
  state: VaultState,
  wanted: WantedState,
  names: PlanOptions['protectedCertificates'],
): FieldValue[] {
  return names
    .filter((name) => !wanted.certificates.has(name))
    .flatMap((name) => state.certificates.get(name) ?? [])
    .flatMap(({ definition: { issuer, fallback_issuer } }) => [issuer, fallback_issuer]);
}

/** The fields in which both differ; the order of what is a set does not count. */
function differences(from: Definition, to: Definition): FieldChange[] {
  return [...new Set([...Object.keys(to), ...Object.keys(from)])]
    .map((field) => ({ field, from: from[field], to: to[field] }))
    .filter((change) => canonical(change.from) !== canonical(change.to));
}

function canonical(value: FieldValue): string {
  return JSON.stringify(typeof value === 'object' ? [...value].sort() : value) ?? '';
}

function secretChange(
  wanted: WantedState,
  section: Section,
  name: string,
  held: Held | undefined,
): FieldChange[] {
  if (section !== 'issuers' && section !== 'dns_providers' && section !== 'deploy_targets') return [];
  const field = section === 'issuers' ? 'eab_hmac_key' : 'secret';
  const issuer = wanted.issuers.get(name);
  const eabKey = issuer !== undefined && 'secrets' in issuer ? issuer.secrets.eabKey : undefined;
  const secret = section === 'issuers' ? eabKey : wanted[section].get(name)?.secret;
  if (secret === undefined) return [];
  const kept = held?.secret?.();
  if (kept === undefined) return [{ field, to: '(secret)' }];
  return sameSecrets(secret, kept) ? [] : [{ field, from: '(secret)', to: '(new secret)' }];
}

async function materialChange(
  wanted: WantedState,
  section: Section,
  name: string,
  held: Held | undefined,
): Promise<FieldChange[]> {
  const imported = section === 'imported_certificates' ? wanted.imported_certificates.get(name) : undefined;
  const bundle = imported?.bundle;
  if (bundle === undefined) return [];
  const pem = [bundle.leaf, ...bundle.chain].map((der) => encodePem('CERTIFICATE', der)).join('');
  if ((await held?.material?.()) === pem) return [];
  const { fingerprintSha256: to } = certificateFacts(bundle.leaf);
  return [{ field: 'fingerprint_sha256', to }];
}
