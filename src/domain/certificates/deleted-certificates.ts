/**
 * Deleted certificates: kept apart from all others until they are restored or purged. Their versions stay where they
 * are, under the id of a certificate that is gone: however many there are, deleting and restoring takes a moment.
 * Nothing reaches versions but through a certificate, so they are not handed out, renewed or counted, and their names
 * are free.
 */
import { parseNewCertName } from '../../base/cert-name.ts';
import { parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findOwner } from '../../db/tables/certificates/certificate-owners.ts';
import {
  countVersions,
  findVersion,
  listVersions,
} from '../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificate,
  insertCertificate,
  updateCertificate,
} from '../../db/tables/certificates/certificates.ts';
import {
  type DeletedCertificateRow,
  deleteDeletedCertificate,
  findDeletedCertificate,
  findDeletedNamed,
  insertDeletedCertificate,
} from '../../db/tables/certificates/deleted-certificates.ts';
import { findIssuer, findIssuerById } from '../../db/tables/issuance/issuers.ts';
import { anyProfile, type ProfileCheck, profileAt } from '../access/profile-confinement.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext, WorldContext } from '../contexts.ts';
import { nextRenewalAt } from '../schedule/renewal-plan.ts';
import { moveBack } from './deleted-versions.ts';

/** How long deleted certificates are kept by default, in days. */
export const defaultKeepDays = 30;

/** Which deleted certificate: by id, or the one with this name that was deleted last. */
export type DeletedChoice = { readonly id: number } | { readonly name: string };

/** What a restored certificate lost. */
export type Restored = {
  readonly name: string;
  /** The issuer that renewed it, if it was removed meanwhile. */
  readonly lostIssuer: string | undefined;
  /** The API keys whose allowlists named it; they do not any more. */
  readonly apiKeys: readonly { readonly id: number; readonly name: string }[];
  /** The labels that it had: by them, it would be readable by surprise. */
  readonly labels: readonly string[];
};

/** What is kept of a certificate, as JSON. */
export type DeletedFacts = {
  readonly settings: Omit<
    CertificateRow,
    'id' | 'issuer_id' | 'fallback_issuer_id' | 'labels' | 'labels_tag'
  >;
  /** Names, because an issuer can be removed and added again. */
  readonly issuer: string | null;
  readonly fallback: string | null;
  readonly api_keys: readonly { readonly id: number; readonly name: string }[];
  /** For people: they are not restored. Missing in what older vaults kept. */
  readonly labels?: readonly string[];
};

/** Keeps a certificate that the caller's transaction is about to delete. */
export async function keepDeleted(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  certificate: CertificateRow,
  apiKeys: DeletedFacts['api_keys'],
): Promise<void> {
  const {
    id: certificateId,
    issuer_id,
    fallback_issuer_id,
    labels,
    labels_tag: _,
    ...settings
  } = certificate;
  const facts: DeletedFacts = {
    settings,
    issuer: (await findIssuerById(writer, issuer_id ?? 0))?.name ?? null,
    fallback: (await findIssuerById(writer, fallback_issuer_id ?? 0))?.name ?? null,
    api_keys: apiKeys,
    labels: parseJsonOr(labels, []),
  };
  await insertDeletedCertificate(writer, {
    name: certificate.name,
    deleted_at: world.now(),
    deleted_by: actor.name,
    facts: toJson(facts),
    certificate_id: certificateId,
  });
}

/**
 * Restores a deleted certificate with its versions, under its own name or `as`. Throws `certificate_not_found`, and
 * `certificate_exists` if the name is taken, and what `check` throws about its profile if an issuer would renew it.
 */
export async function undeleteCertificate(
  vault: SecretsContext,
  actor: Actor,
  which: DeletedChoice,
  as?: string,
  check: ProfileCheck = anyProfile,
): Promise<Restored> {
  return vault.db.write(async (writer) => {
    const row = await requireDeleted(writer, which);
    const name = as ?? row.name;
    await refuseTaken(writer, name);
    const facts = parseJson(row.facts) as DeletedFacts;
    const now = vault.world.now();
    const issuer = facts.issuer === null ? undefined : await findIssuer(writer, facts.issuer);
    if (issuer !== undefined) check(profileAt(issuer, facts.settings.profile));
    const owner = await findOwner(writer, facts.settings.acme_client_id ?? 0);
    const fallback = facts.fallback === null ? undefined : await findIssuer(writer, facts.fallback);
    const restored = {
      ...facts.settings,
      name,
      issuer_id: issuer?.id ?? null,
      fallback_issuer_id: fallback?.id ?? null,
      acme_client_id: owner?.id ?? null,
      auto_renew: issuer === undefined ? (0 as const) : facts.settings.auto_renew,
      ...forgotten,
    };
    const id = await insertCertificate(
      writer,
      row.certificate_id === null ? restored : { ...restored, id: row.certificate_id },
    );
    if (row.certificate_id === null) await moveBack(vault, writer, row.id, id);
    const current =
      (await findVersion(writer, id, restored.current_version ?? 0)) ??
      (await listVersions(writer, id, { limit: 1 }))[0];
    await updateCertificate(writer, id, {
      current_version: current?.version ?? null,
      ari_check_at: current?.directory_url == null ? null : now,
      next_renewal_at: nextRenewalAt(restored, current, now),
    });
    await deleteDeletedCertificate(writer, row.id);
    const versions = await countVersions(writer, id);
    const detail = { deleted_at: formatTimestamp(row.deleted_at), versions, from: row.name };
    const resource = `certificate:${name}`;
    record(writer, { actor, action: 'certificate.undelete', resource, detail }, now);
    const lostIssuer = issuer === undefined ? (facts.issuer ?? undefined) : undefined;
    return { name, lostIssuer, apiKeys: facts.api_keys, labels: facts.labels ?? [] };
  });
}

/** What failed before the deletion, and the CA's renewal window, say nothing about the restored certificate. */
const forgotten = {
  last_error: null,
  failed_attempts: 0,
  retry_after: null,
  fallback_retry_after: null,
  ari_window_start: null,
  ari_window_end: null,
  ari_renew_at: null,
} as const;

/** The chosen deleted certificate. Throws `certificate_not_found`. */
export async function requireDeleted(reader: Reader, which: DeletedChoice): Promise<DeletedCertificateRow> {
  const row =
    'id' in which
      ? await findDeletedCertificate(reader, which.id)
      : await findDeletedNamed(reader, which.name);
  if (row !== undefined) return row;
  throw deletedCertificateNotFound('id' in which ? which.id : which.name);
}

/** There is no deleted certificate with this id or name. */
export function deletedCertificateNotFound(which: number | string): Problem {
  return new Problem('certificate_not_found', {
    detail: `Unknown deleted certificate ${JSON.stringify(which)}.`,
    hint: 'Try: vault certificate list --deleted',
  });
}

async function refuseTaken(reader: Reader, name: string): Promise<void> {
  if (parseNewCertName(name) === undefined) {
    throw new Problem('invalid_request', { detail: `${JSON.stringify(name)} is not a certificate name.` });
  }
  if ((await findCertificate(reader, name)) === undefined) return;
  throw new Problem('certificate_exists', {
    detail: `A certificate named "${name}" already exists.`,
    hint: 'Restore the deleted one under another name with --as NAME, or delete the existing one first.',
  });
}
