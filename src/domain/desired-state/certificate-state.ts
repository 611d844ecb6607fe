/** One certificate as it should be: created if it is missing, changed where it differs, as `vault apply` would. */
import { defaultKeyType, isKeyType, type KeyType } from '../../base/key-type.ts';
import { Problem } from '../../base/problem.ts';
import { findCertificate } from '../../db/tables/certificates/certificates.ts';
import { anyProfile, type ProfileCheck } from '../access/profile-confinement.ts';
import type { Actor } from '../audit/audit.ts';
import { changeCertificate } from '../certificates/certificate-update.ts';
import { createCertificate } from '../certificates/certificates.ts';
import { completeCertificate } from '../certificates/client-keys.ts';
import type { SecretsContext } from '../contexts.ts';
import type { ZoneContext } from '../dns-providers/wildcard-zones.ts';
import type { NewCertificate, UpdateCertificateInput } from '../inputs.ts';
import { labelsOf } from '../labels/certificate-labelling.ts';
import type { QueueContext } from '../renewals/renewal-queue.ts';
import { type Change, planChanges } from './state-plan.ts';
import { readVaultState } from './vault-state.ts';

export type CertificateOutcome = {
  readonly did: 'create' | 'update' | 'nothing';
  /** The id of the queued renewal. */
  readonly renewal: number | undefined;
};

/**
 * Creates the certificate, or changes the settings that differ; those not given have their defaults, but labels stay.
 * An imported certificate gets the issuer. Throws `invalid_request`, and what `check` throws about the profile;
 * nothing is changed then.
 */
export async function ensureCertificate(
  vault: SecretsContext & QueueContext & ZoneContext,
  actor: Actor,
  given: NewCertificate,
  check: ProfileCheck = anyProfile,
): Promise<CertificateOutcome> {
  const existing =
    given.labels === undefined ? await findCertificate(vault.db.reader, given.name) : undefined;
  const input = existing === undefined ? given : { ...given, labels: labelsOf(existing) };
  const change = await changeTo(vault, input);
  if (change === undefined) return { did: 'nothing', renewal: undefined };
  if (change.action === 'update') return update(vault, actor, input, change, check);
  try {
    return { did: 'create', renewal: await createCertificate(vault, actor, input, check) };
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'certificate_exists')) throw error;
    // Someone created it in the meantime.
    const missing = await changeTo(vault, input);
    return missing === undefined
      ? { did: 'nothing', renewal: undefined }
      : update(vault, actor, input, missing, check);
  }
}

async function update(
  vault: SecretsContext & QueueContext & ZoneContext,
  actor: Actor,
  input: NewCertificate,
  change: Change,
  check: ProfileCheck,
): Promise<CertificateOutcome> {
  const settings = changedSettings(input, change);
  const renewal = await changeCertificate(vault, actor, input.name, settings, check);
  return { did: 'update', renewal };
}

/** The change that leads to this certificate, if any. */
async function changeTo(vault: SecretsContext, input: NewCertificate): Promise<Change | undefined> {
  const state = await readVaultState(vault, vault.db.reader, { names: [input.name], keyIds: [] });
  const wanted = {
    issuers: new Map(),
    dns_providers: new Map(),
    certificates: new Map([[String(input.name), input]]),
    imported_certificates: new Map(),
    deploy_targets: new Map(),
    api_keys: new Map(),
    acme_clients: new Map(),
  };
  const [change] = await planChanges(state, wanted, { others: 'stay', protectedCertificates: [] });
  return change;
}

/** The settings of the certificate that the change names; null clears one. */
export function changedSettings(input: NewCertificate, { fields }: Change): UpdateCertificateInput {
  const nothing = {
    ...{ fallback_issuer: null, lifetime: null, profile: null, challenge: null },
    ...{ usage: null, uris: null, emails: null, subject: null, labels: [] },
  };
  // Without a key type in the document, the plan has that of the issuer.
  const planned = fields.find(({ field }) => field === 'key_type')?.to ?? '';
  const usual = isKeyType(String(planned)) ? (planned as KeyType) : defaultKeyType;
  const { name: _, request, key_type, ...settings } = completeCertificate(input, usual);
  const key = request === undefined ? { key_type } : {};
  const all = Object.entries({ ...nothing, ...settings, ...key });
  return Object.fromEntries(all.filter(([key]) => fields.some(({ field }) => field === key)));
}
