/** Query plans: no query of a request or of the scheduler reads a growing table whole, or sorts it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely } from 'kysely';
import { toJson } from '../../../src/base/json.ts';
import { insertAuditEvents } from '../../../src/db/audit/audit-insertion.ts';
import { listAuditEvents } from '../../../src/db/audit/audit-search.ts';
import { Database, type Reader, type Writer } from '../../../src/db/database.ts';
import type { Schema } from '../../../src/db/schema/schema.ts';
import { sqliteDialect } from '../../../src/db/sqlite/sqlite-dialect.ts';
import { findAdministrator } from '../../../src/db/tables/access/administrators.ts';
import { allowlistsOf, apiKeysNaming } from '../../../src/db/tables/access/api-key-certificates.ts';
import { pageApiKeys, pageApiKeysOf } from '../../../src/db/tables/access/api-key-pages.ts';
import { findApiKey, findApiKeyByPrefix } from '../../../src/db/tables/access/api-keys.ts';
import {
  findEnrollmentByPrefix,
  findKeyOfRequest,
  liveKeysOf,
  pageEnrollments,
} from '../../../src/db/tables/access/enrollments.ts';
import { countOidcResults, findOidcResult } from '../../../src/db/tables/access/oidc-uses.ts';
import { findSessionByToken, listSessions } from '../../../src/db/tables/access/sessions.ts';
import {
  findClientAccountByKey,
  hasMoreAccounts,
} from '../../../src/db/tables/acme-server/acme-client-accounts.ts';
import {
  countClientOrders,
  deleteClientOrders,
  deleteFailedOrders,
  findClientOrder,
  firstOrderExpiry,
  firstOrderFailure,
  isReplaced,
  orderedBeforeLast,
  pageClientOrders,
} from '../../../src/db/tables/acme-server/acme-client-orders.ts';
import {
  findAcmeClientByKid,
  findAcmeClientByName,
  findAcmeClientRow,
  pageAcmeClientRows,
} from '../../../src/db/tables/acme-server/acme-clients.ts';
import { deleteNonces, firstNonceExpiry } from '../../../src/db/tables/acme-server/acme-nonces.ts';
import {
  findOpenForNames,
  listOrdersOf,
  updateWaitingOrders,
} from '../../../src/db/tables/acme-server/upstream-orders.ts';
import {
  matchesIn,
  nextSpan,
  pageCertificates,
} from '../../../src/db/tables/certificates/certificate-search.ts';
import { countByStatus, pageWatched } from '../../../src/db/tables/certificates/certificate-statuses.ts';
import {
  findCertificateSummary,
  listCertificateSummaries,
  listPlanned,
  pagePlanned,
} from '../../../src/db/tables/certificates/certificate-summaries.ts';
import {
  findVersion,
  lastVersionNumber,
  listRevokedVersions,
  listVersions,
  listVersionsWithSerial,
} from '../../../src/db/tables/certificates/certificate-versions.ts';
import {
  findCertificate,
  findCertificateById,
  findOwnedCertificate,
  listAriDue,
  listCertificateNames,
  listDueCertificates,
  nextMoment,
} from '../../../src/db/tables/certificates/certificates.ts';
import {
  countTargetCertificates,
  deleteTargetCertificates,
  deploySoon,
  findDeployTarget,
  findTargetCertificate,
  findTargetDeployment,
  getDeployTarget,
  hasTargetCertificates,
  listTargetCertificates,
  nextDueTargetCertificate,
  targetsWith,
} from '../../../src/db/tables/deploy-targets.ts';
import {
  deleteSilent,
  findDeployment,
  firstSilence,
  hasDeployments,
  pageDeploymentFacts,
  pageDeployments,
} from '../../../src/db/tables/deployments.ts';
import {
  checkSoon,
  dueEndpoints,
  findEndpoint,
  findEndpointAt,
  hasEndpoints,
  pageEndpointFacts,
  pageEndpoints,
} from '../../../src/db/tables/endpoints.ts';
import { nextRange } from '../../../src/db/tables/id-ranges.ts';
import {
  findHttpChallenge,
  findTlsAlpnChallenge,
  listLeftoverChallenges,
  listRenewalChallenges,
} from '../../../src/db/tables/issuance/acme-challenges.ts';
import { findRoot, listIntermediates } from '../../../src/db/tables/issuance/ca-certificates.ts';
import {
  failedOrders,
  issuedForNames,
  issuedNear,
  issuedWithoutSet,
  orderedBefore,
} from '../../../src/db/tables/issuance/issuance-holds.ts';
import { findAcmeIssuer, findIssuerById } from '../../../src/db/tables/issuance/issuers.ts';
import { findPrivateCa } from '../../../src/db/tables/issuance/private-cas.ts';
import { endLeases, listLeaseOwners } from '../../../src/db/tables/nodes/leases.ts';
import {
  listExpiringApiKeys,
  listExpiringCertificates,
} from '../../../src/db/tables/notifications/notification-watch.ts';
import { listLaneHeads, listLeftRenewals } from '../../../src/db/tables/renewals/renewal-lanes.ts';
import {
  findClaimableRenewal,
  findNamedRenewal,
  findOpenRenewal,
  findRenewal,
  listRenewals,
  pageQueuedRenewals,
  renewalsState,
  shortenLeases,
} from '../../../src/db/tables/renewals/renewals.ts';
import { listEndedRenewals } from '../../../src/db/tables/renewals/waiting-renewals.ts';
import {
  dueReplacementChecks,
  dueReplacementRenewals,
  findCompromisedVersions,
  isReplacementOpen,
} from '../../../src/db/tables/replacements.ts';
import { bound } from '../../harness/database/bound-database.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

type Query = (reader: Reader) => Promise<unknown>;

const world = new TestWorld();
const path = join(tempDir({ after }), 'vault.db');

before(async () => {
  const database = await bound(await Database.open(path, world));
  // An empty audit log needs no further query.
  const event = { at: 0, actor: 'x', action: 'x', resource: 'x', detail: '{}', ip: null, request_id: null };
  await database.write((writer) => insertAuditEvents(writer, [event]));
  await database.close();
});

/** What SQLite would do for each statement that the query runs. */
async function plansOf(query: Query): Promise<string[]> {
  const statements: string[] = [];
  const traced = new BetterSqlite3(path, { verbose: (text) => statements.push(String(text)) });
  const explainer = new BetterSqlite3(path);
  try {
    await query(new Kysely<Schema>({ dialect: sqliteDialect(traced, world) }));
    assert(statements.length > 0);
    return statements.flatMap((statement) => {
      const steps = explainer.prepare(`explain query plan ${statement}`).all() as { detail: string }[];
      return steps.map(({ detail }) => detail);
    });
  } finally {
    traced.close();
    explainer.close();
  }
}

/** Parts of all certificates, and of an allowlist or of those of an issuer. */
const names = { by: 'name', after: 'a', last: 'm', count: 100 } as const;
const ids = { by: 'id', after: 1, last: 100, count: 100 } as const;

/** Each with a step of its plan that answers it, and whether it sorts the few rows that it has found. */
const searches: Record<string, readonly [query: Query, step: RegExp, sorts?: 'sorts']> = {
  'a key by its prefix': [
    (db) => findApiKeyByPrefix(db, 'vk_x'),
    /SEARCH api_keys USING INDEX .*\(prefix=\?\)/,
  ],
  'a key by the prefix of its previous secret': [
    (db) => findApiKeyByPrefix(db, 'vk_x'),
    /SEARCH api_keys USING INDEX api_keys_by_previous_prefix \(previous_prefix=\?\)/,
  ],
  'a key by its id': [(db) => findApiKey(db, 1), /SEARCH api_keys USING INTEGER PRIMARY KEY/],
  'an ACME client by its id': [
    (db) => findAcmeClientRow(db, 1),
    /SEARCH acme_clients USING INTEGER PRIMARY KEY/,
  ],
  'an ACME client by its kid': [
    (db) => findAcmeClientByKid(db, 'x'),
    /SEARCH acme_clients USING INDEX .*\(kid=\?\)/,
  ],
  'an ACME client by its name': [
    (db) => findAcmeClientByName(db, 'x'),
    /SEARCH acme_clients USING INDEX .*\(name=\?\)/,
  ],
  'a page of ACME clients': [
    (db) => pageAcmeClientRows(db, { after: 1, limit: 2 }),
    /SEARCH acme_clients USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'an order of an ACME client by its id': [
    (db) => findClientOrder(db, 1),
    /SEARCH acme_client_orders USING INTEGER PRIMARY KEY \(rowid=\?\)/,
  ],
  'the orders of a renewal': [
    (db) => listOrdersOf(db, 1),
    /SEARCH acme_client_orders USING INDEX acme_client_orders_by_renewal \(renewal_id=\?\)/,
  ],
  'past orders that are due to be pruned': [
    (db) => deleteClientOrders(db as Writer, 1, 10),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_by_expiry \(expires_at<\?\)/,
  ],
  'the first order that is due to be pruned': [
    (db) => firstOrderExpiry(db),
    /SCAN acme_client_orders USING COVERING INDEX acme_client_orders_by_expiry/,
  ],
  'failed orders that are due to be pruned': [
    (db) => deleteFailedOrders(db as Writer, 1, 10),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_past_failures \(finished_at<\?\)/,
  ],
  'the first failed order that is due to be pruned': [
    (db) => firstOrderFailure(db),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_past_failures \(finished_at>\?\)/,
  ],
  'used nonces that are due to be pruned': [
    (db) => deleteNonces(db as Writer, 1, 10),
    /SEARCH acme_nonces USING COVERING INDEX acme_nonces_by_expiry \(expires_at<\?\)/,
  ],
  'the first nonce that is due to be pruned': [
    (db) => firstNonceExpiry(db),
    /SCAN acme_nonces USING COVERING INDEX acme_nonces_by_expiry/,
  ],
  'the allowlist of a key': [
    (db) => findApiKeyByPrefix(db, 'vk_x'),
    /SEARCH api_key_certificates USING PRIMARY KEY \(api_key_id=\?\)/,
  ],
  'the certificate of an ACME client': [
    (db) => findOwnedCertificate(db, 1, 1, 'x'),
    /SEARCH certificates USING INDEX certificates_by_owner \(acme_client_id=\? AND issuer_id=\? AND owned_names=\?\)/,
  ],
  'versions by their serial number': [
    (db) => listVersionsWithSerial(db, '01'),
    /SEARCH certificate_versions USING INDEX certificate_versions_by_serial \(serial=\?\)/,
  ],
  'a renewal under way for a set of names': [
    (db) => findOpenForNames(db, 1, 'x'),
    /renewals USING INDEX renewals_(?:open|queued|queue)/,
  ],
  'the orders that wait for a renewal': [
    (db) => updateWaitingOrders(db as Writer, 1, { version: 1 }),
    /acme_client_orders USING INDEX acme_client_orders_by_renewal \(renewal_id=\?\)/,
  ],
  'the keys that list a certificate': [
    (db) => apiKeysNaming(db, 1),
    /SEARCH api_key_certificates USING .*INDEX api_key_certificates_by_certificate/,
    'sorts',
  ],
  'an administrator by name': [
    (db) => findAdministrator(db, 'a'),
    /SEARCH administrators USING INDEX .*\(name=\?\)/,
  ],
  'a session by its token': [
    (db) => findSessionByToken(db, Buffer.alloc(32)),
    /SEARCH sessions USING INDEX .*\(token_hash=\?\)/,
  ],
  'the number of sign-ins that have begun on the command line': [
    (db) => countOidcResults(db, 0, 100),
    /SEARCH oidc_uses USING INDEX oidc_uses_by_expiry \(expires_at>\?\)/,
  ],
  'a sign-in that has begun, by its handle': [
    (db) => findOidcResult(db, Buffer.alloc(32)),
    /SEARCH oidc_uses USING (?:PRIMARY KEY|INDEX \S+) \(id_hash=\?\)/,
  ],
  'the newest record of a session': [
    (db) => findSessionByToken(db, Buffer.alloc(32)),
    /SEARCH audit_events USING INDEX audit_events_by_row \(resource=\?\)/,
  ],
  'the newest record of a key': [
    (db) => findApiKeyByPrefix(db, 'a'),
    /SEARCH audit_events USING INDEX audit_events_by_row \(resource=\?\)/,
  ],
  'the administrator of a session': [
    (db) => findSessionByToken(db, Buffer.alloc(32)),
    /SEARCH administrators USING INTEGER PRIMARY KEY/,
  ],
  'the sessions of an administrator': [
    (db) => listSessions(db, 1),
    /SEARCH sessions USING INDEX sessions_by_administrator/,
  ],
  'a certificate by name': [
    (db) => findCertificate(db, 'a'),
    /SEARCH certificates USING INDEX .*\(name=\?\)/,
  ],
  'a certificate by id': [
    (db) => findCertificateById(db, 1),
    /SEARCH certificates USING INTEGER PRIMARY KEY/,
  ],
  'a certificate with its current version': [
    (db) => findCertificateSummary(db, 'a'),
    /SEARCH certificate_versions USING INDEX .*\(certificate_id=\? AND version=\?\)/,
  ],
  'the first page of certificates': [
    (db) => listCertificateSummaries(db, { limit: 10 }),
    /SCAN certificates USING INDEX sqlite_autoindex_certificates_1/,
  ],
  'a further page of certificates': [
    (db) => listCertificateSummaries(db, { limit: 10, after: 'a' }),
    /SEARCH certificates USING INDEX .*\(name>\?\)/,
  ],
  'a further page of all certificates for administrators': [
    (db) => pageCertificates(db, 'a', 10),
    /SEARCH certificates USING INDEX .*\(name>\?\)/,
  ],
  'the part of all certificates that a search looks through next': [
    (db) => nextSpan(db, { now: 1, limit: 10 }, undefined, 100),
    /SEARCH certificates USING COVERING INDEX .*\(name>\?\)/,
  ],
  'a search in a part of all certificates': [
    (db) => matchesIn(db, { now: 1, limit: 10, search: 'x', status: 'expiring', issuer: 'ca' }, names),
    /SEARCH certificates USING INDEX .*\(name>\? AND name<\?\)/,
    'sorts',
  ],
  'the part of the certificates of an issuer that a search looks through next': [
    (db) => nextSpan(db, { now: 1, limit: 10, issuer: 'ca' }, undefined, 100),
    /SEARCH own USING COVERING INDEX certificates_by_issuer \(issuer_id=\? AND rowid>\? AND rowid<\?\)/,
  ],
  'a search in a part of the certificates of an issuer': [
    (db) => matchesIn(db, { now: 1, limit: 10, search: 'x', issuer: 'ca' }, ids),
    /SEARCH certificates USING INTEGER PRIMARY KEY \(rowid=\?\)/,
    'sorts',
  ],
  'the part of an allowlist that a search looks through next': [
    (db) => nextSpan(db, { now: 1, limit: 10, allowlistOf: 1 }, undefined, 100),
    /SEARCH api_key_certificates USING PRIMARY KEY \(api_key_id=\? AND certificate_id>\? AND certificate_id<\?\)/,
  ],
  'a search in a part of an allowlist': [
    (db) => matchesIn(db, { now: 1, limit: 10, allowlistOf: 1, issuer: 'ca', sort: 'expiry' }, ids),
    /SEARCH certificates USING INTEGER PRIMARY KEY \(rowid=\?\)/,
    'sorts',
  ],
  'the status of a part of all certificates': [
    (db) => countByStatus(db, 1, { after: 1, last: 100 }),
    /SEARCH certificates USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
    'sorts',
  ],
  'a page of API keys': [
    (db) => pageApiKeys(db, { after: 7, limit: 10 }),
    /SEARCH api_keys USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'the keys that can read a certificate': [
    (db) => pageApiKeysOf(db, { id: 1, labels: ['team=web'] }, { limit: 10 }),
    /SEARCH api_key_certificates USING .*INDEX api_key_certificates_by_certificate/,
  ],
  'the keys that are for any certificate': [
    (db) => pageApiKeysOf(db, { id: 1, labels: ['team=web'] }, { limit: 10 }),
    /SCAN api_keys USING COVERING INDEX api_keys_for_any/,
  ],
  'the keys that are for certificates with a label': [
    (db) => pageApiKeysOf(db, { id: 1, labels: ['team=web'] }, { limit: 10 }),
    /SEARCH object_labels USING PRIMARY KEY \(kind=\? AND label=\?\)/,
  ],
  'a page of API keys with a label': [
    (db) => pageApiKeys(db, { limit: 10, labels: ['team=web'] }),
    /SEARCH object_labels EXISTS USING COVERING INDEX object_labels_by_object \(kind=\? AND object_id=\? AND label=\?\)/,
  ],
  'a page of the API keys that an enrollment created': [
    (db) => pageApiKeys(db, { after: 7, limit: 10, enrollment: 1 }),
    /SEARCH api_keys USING INDEX api_keys_by_enrollment \(enrollment_id=\? AND id>\?\)/,
  ],
  'the keys to revoke with their enrollment': [
    (db) => liveKeysOf(db, 1, 100),
    /SEARCH api_keys USING INDEX api_keys_by_enrollment \(enrollment_id=\?\)/,
  ],
  'the key that a repeated request created': [
    (db) => findKeyOfRequest(db, 1, Buffer.alloc(32)),
    /SEARCH api_keys USING COVERING INDEX api_keys_by_enrollment_request \(enrollment_id=\? AND enrollment_request=\?\)/,
  ],
  'an enrollment by the prefix of its token': [
    (db) => findEnrollmentByPrefix(db, 've_x'),
    /SEARCH enrollments USING INDEX .*\(prefix=\?\)/,
  ],
  'a page of enrollments': [
    (db) => pageEnrollments(db, { after: 7, limit: 10 }),
    /SEARCH enrollments USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'a deployment by its name': [
    (db) => findDeployment(db, 1, 'x'),
    /SEARCH deployments USING INDEX deployments_by_name \(certificate_id=\? AND name=\?\)/,
  ],
  'the number of deployments of a key': [
    (db) => hasDeployments(db, 1, 10),
    /SEARCH deployments USING COVERING INDEX deployments_by_api_key \(api_key_id=\?\)/,
  ],
  'a page of deployments': [
    (db) => pageDeployments(db, { after: 1, last: 9, limit: 3, labels: ['team=web'], reach: ['team=web'] }),
    /SEARCH deployments USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'a page of the deployments of a certificate': [
    (db) => pageDeployments(db, { certificateId: 1, after: 1, limit: 3 }),
    /SEARCH deployments USING INDEX deployments_by_certificate \(certificate_id=\? AND id>\?\)/,
  ],
  'the facts of some deployments': [
    (db) => pageDeploymentFacts(db, 1, 3),
    /SEARCH deployments USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'the first deployment to become silent': [
    (db) => firstSilence(db),
    /SEARCH deployments USING COVERING INDEX deployments_by_silence/,
  ],
  'silent deployments that are due to be pruned': [
    (db) => deleteSilent(db as Writer, 1, 10),
    /SEARCH deployments USING COVERING INDEX deployments_by_silence \(silent_at<\?\)/,
  ],
  'a deploy target by its name': [
    (db) => findDeployTarget(db, 'a'),
    /SEARCH deploy_targets USING INDEX .*\(name=\?\)/,
  ],
  'a deploy target by its id': [
    (db) => getDeployTarget(db, 1),
    /SEARCH deploy_targets USING INTEGER PRIMARY KEY \(rowid=\?\)/,
  ],
  'the certificates of a deploy target': [
    (db) => listTargetCertificates(db, 1),
    /SEARCH deploy_target_certificates USING INDEX deploy_target_certificates_by_target \(deploy_target_id=\?\)/,
    'sorts',
  ],
  'the number of certificates of a deploy target': [
    (db) => countTargetCertificates(db, 1),
    /SEARCH deploy_target_certificates USING INDEX deploy_target_certificates_by_target \(deploy_target_id=\?\)/,
  ],
  'a certificate of a deploy target': [
    (db) => findTargetCertificate(db, 1),
    /SEARCH deploy_target_certificates USING INTEGER PRIMARY KEY \(rowid=\?\)/,
  ],
  'the maximum number of certificates of deploy targets': [
    (db) => hasTargetCertificates(db, 10),
    /SEARCH deploy_target_certificates USING .*\(rowid>\?\)/,
  ],
  'the certificate of a deploy target that is due': [
    (db) => nextDueTargetCertificate(db, 1, [2, 3]),
    /SEARCH deploy_target_certificates USING INDEX deploy_target_certificates_by_due \(due_at<\?\)/,
  ],
  'the deploy targets of a certificate': [
    (db) => targetsWith(db, 1, 5),
    /SEARCH deploy_target_certificates USING INDEX deploy_target_certificates_by_certificate \(certificate_id=\?\)/,
    'sorts',
  ],
  'the deploy targets of a renewed certificate': [
    (db) => deploySoon(db as Writer, 1, 1),
    /SEARCH deploy_target_certificates USING INDEX deploy_target_certificates_by_certificate \(certificate_id=\?\)/,
  ],
  'the certificates that are removed from a deploy target': [
    (db) => deleteTargetCertificates(db as Writer, 1, [1]),
    /SEARCH deploy_target_certificates USING .*INDEX deploy_target_certificates_by_target \(deploy_target_id=\? AND certificate_id=\?\)/,
  ],
  'the deployment of a certificate on a deploy target': [
    (db) => findTargetDeployment(db, 1, 1),
    /SEARCH deployments USING INDEX deployments_by_deploy_target \(deploy_target_id=\?\)/,
  ],
  'an endpoint by its id': [
    (db) => findEndpoint(db, 1),
    /SEARCH endpoints USING INTEGER PRIMARY KEY \(rowid=\?\)/,
  ],
  'an endpoint by its address and server name': [
    (db) => findEndpointAt(db, { host: 'a', port: 1, server_name: 'a' }),
    /SEARCH endpoints USING INDEX endpoints_by_address \(host=\? AND port=\? AND server_name=\?\)/,
  ],
  'a page of endpoints': [
    (db) => pageEndpoints(db, { after: 1, last: 9, limit: 3, labels: ['team=web'], reach: ['team=web'] }),
    /SEARCH endpoints USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'a page of the endpoints of a certificate': [
    (db) => pageEndpoints(db, { certificateId: 1, after: 1, limit: 3 }),
    /SEARCH endpoints USING INDEX endpoints_by_certificate \(certificate_id=\? AND id>\?\)/,
  ],
  'the maximum number of endpoints': [(db) => hasEndpoints(db, 10), /SEARCH endpoints USING .*\(rowid>\?\)/],
  'endpoints that are due': [
    (db) => dueEndpoints(db, 1, 3),
    /SEARCH endpoints USING INDEX endpoints_by_next_check \(next_check_at<\?\)/,
  ],
  'the endpoints of a renewed certificate': [
    (db) => checkSoon(db as Writer, 1, { now: 1, at: 2 }),
    /SEARCH endpoints USING INDEX endpoints_by_certificate \(certificate_id=\?\)/,
  ],
  'the facts of some endpoints': [
    (db) => pageEndpointFacts(db, 1, 3),
    /SEARCH endpoints USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'the span of certificates with a label': [
    (db) => nextSpan(db, { now: 1, limit: 10, labels: ['team=web'] }, undefined, 10),
    /SEARCH object_labels USING PRIMARY KEY \(kind=\? AND label=\? AND object_id>\? AND object_id<\?\)/,
  ],
  'the allowlists of some keys': [
    (db) => allowlistsOf(db, [1, 2]),
    /SEARCH api_key_certificates USING PRIMARY KEY \(api_key_id=\?\)/,
    'sorts',
  ],
  'a page of audit events': [
    (db) => listAuditEvents(db, new TestWorld(), {}, { before: 9, limit: 3 }),
    /SEARCH audit_events USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'a page of the audit events of a time': [
    (db) => listAuditEvents(db, new TestWorld(), { since: 1, until: 2 }, { limit: 3 }),
    /SEARCH audit_events USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'the audit events of an actor, in blocks': [
    (db) => listAuditEvents(db, new TestWorld(), { actor: 'x', since: 1 }, { before: 9, limit: 3 }),
    /SEARCH audit_events USING INDEX audit_events_by_actor \(<expr>=\? AND actor=\?\)/,
    'sorts',
  ],
  'a page of the audit events of an action': [
    (db) => listAuditEvents(db, new TestWorld(), { action: 'x' }, { limit: 3 }),
    /SEARCH audit_events USING INDEX audit_events_by_action \(action=\? AND id>\? AND id<\?\)/,
  ],
  'the audit events about something, in blocks': [
    (db) => listAuditEvents(db, new TestWorld(), { resource: 'x' }, { before: 9, limit: 3 }),
    /SEARCH audit_events USING INDEX audit_events_by_resource \(<expr>=\? AND resource=\?\)/,
    'sorts',
  ],
  'the first page of renewals': [
    (db) => listRenewals(db, { limit: 3 }),
    /SEARCH renewals USING INTEGER PRIMARY KEY \(rowid<\?\)/,
  ],
  'a page of renewals': [
    (db) => listRenewals(db, { before: 9, limit: 3 }),
    /SEARCH renewals USING INTEGER PRIMARY KEY \(rowid<\?\)/,
  ],
  'a page of the renewals of a certificate': [
    (db) => listRenewals(db, { certificateId: 1, before: 9, limit: 3 }),
    /SEARCH renewals USING INDEX renewals_by_certificate \(certificate_id=\? AND id<\?\)/,
  ],
  'a page of the renewals that failed': [
    (db) => listRenewals(db, { status: 'failed', before: 9, limit: 3 }),
    /SEARCH renewals USING INDEX renewals_failed \(id<\?\)/,
  ],
  'the renewals that are queued': [
    (db) => pageQueuedRenewals(db, 1, 3),
    /SEARCH renewals USING INDEX renewals_open \(certificate_id>\?\)/,
  ],
  'the renewals that run': [
    (db) => listRenewals(db, { status: 'running', limit: 3 }),
    /SCAN renewals USING INDEX renewals_running/,
    'sorts',
  ],
  'a part of the renewals that succeeded': [
    (db) => listRenewals(db, { status: 'succeeded', from: 2, before: 9, limit: 3 }),
    /SEARCH renewals USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'a renewal with the names': [(db) => findNamedRenewal(db, 1), /SEARCH renewals USING INTEGER PRIMARY KEY/],
  'the state of the renewals': [renewalsState, /SCAN renewals USING INDEX renewals_open/],
  'the certificate names for a suggestion': [
    (db) => listCertificateNames(db, 10),
    /SCAN certificates USING COVERING INDEX/,
  ],
  'a version': [
    (db) => findVersion(db, 1, 2),
    /SEARCH certificate_versions USING INDEX .*\(certificate_id=\? AND version=\?\)/,
  ],
  'the revoked versions': [
    (db) => listRevokedVersions(db, 1, 10),
    /SEARCH certificate_versions USING INDEX .*\(certificate_id=\?\)/,
  ],
  'a page of versions': [
    (db) => listVersions(db, 1, { before: 9, limit: 3 }),
    /SEARCH certificate_versions USING INDEX .*\(certificate_id=\? AND version<\?\)/,
  ],
  'the last version number': [
    (db) => lastVersionNumber(db, 1),
    /SEARCH certificate_versions USING COVERING INDEX/,
  ],
  'the certificates that are due': [
    (db) => listDueCertificates(db, 1, 10),
    /SEARCH certificates USING INDEX certificates_by_next_renewal \(.*next_renewal_at<\?\)/,
  ],
  'the open renewal of a certificate': [
    (db) => findOpenRenewal(db, 1),
    /SEARCH renewals USING INDEX renewals_open \(certificate_id=\?\)/,
  ],
  'the next renewal of each lane of the queue': [
    (db) => listLaneHeads(db, 1),
    /SEARCH renewals USING COVERING INDEX renewals_queued \(issuer_id=\? AND dns_lane=\?\)/,
    'sorts',
  ],
  'the next lane of an issuer': [
    (db) => listLaneHeads(db, 1),
    /SEARCH renewals USING COVERING INDEX renewals_queued \(issuer_id=\? AND dns_lane>\?\)/,
    'sorts',
  ],
  'the next issuer of the queue': [
    (db) => listLaneHeads(db, 1),
    /SEARCH renewals USING COVERING INDEX renewals_queued \(issuer_id>\?\)/,
    'sorts',
  ],
  'renewals whose worker died': [
    (db) => listLeftRenewals(db, 1),
    /SEARCH renewals USING INDEX renewals_running \(lease_expires_at<\?\)/,
    'sorts',
  ],
  'the owners of leases of renewals': [
    (db) => listLeaseOwners(db, 1),
    /SEARCH renewals USING INDEX renewals_running \(lease_expires_at>\?\)/,
    'sorts',
  ],
  'the owners of leases of deliveries': [
    (db) => listLeaseOwners(db, 1),
    /(SEARCH|SCAN) notification_deliveries USING INDEX notification_deliveries_open/,
    'sorts',
  ],
  'the leases of renewals that end early': [
    (db) => endLeases(db as Writer, ['x'], 1),
    /(SEARCH|SCAN) renewals USING INDEX renewals_running/,
  ],
  'the leases of deliveries that end early': [
    (db) => endLeases(db as Writer, ['x'], 1),
    /(SEARCH|SCAN) notification_deliveries USING INDEX notification_deliveries_open/,
  ],
  'a renewal to claim': [(db) => findClaimableRenewal(db, 7, 1), /SEARCH renewals USING INTEGER PRIMARY KEY/],
  'the pause of the issuer of a renewal to claim': [
    (db) => findClaimableRenewal(db, 7, 1),
    /SEARCH acme_issuers USING INTEGER PRIMARY KEY/,
  ],
  'certificates issued for a set of names': [
    (db) => issuedForNames(db, 'https://ca.test', 'x', 5),
    /SEARCH renewals USING INDEX renewals_by_names \(name_set=\?\)/,
  ],
  'certificates issued near a domain': [
    (db) => issuedNear(db, 'https://ca.test', 'example.com', 1),
    /SEARCH certificate_versions USING INDEX certificate_versions_by_directory \(directory_url=\? AND created_at>\?\)/,
  ],
  'the last order that counts for the limit of an account': [
    (db) => orderedBefore(db, 1, 300, 1),
    /SEARCH renewals USING INDEX renewals_by_account \(acme_account_id=\?\)/,
  ],
  'failed orders of a certificate and recent ones of others': [
    (db) => failedOrders(db, 1, { id: 1, domains: toJson([]) }, 0, 5),
    /SEARCH renewals USING INDEX renewals_by_certificate \(certificate_id=\?\)/,
  ],
  'certificates issued before sets of names were stored': [
    (db) => issuedWithoutSet(db, 'https://ca.test', 1),
    /SEARCH renewals USING INDEX renewals_by_names \(name_set=\? AND finished_at>\?\)/,
  ],
  'the outcomes of the renewals of an issuer': [
    (db) => listEndedRenewals(db, 1, 5),
    /SEARCH renewals USING INDEX renewals_by_issuer \(issuer_id=\?\)/,
  ],
  'the leases that are too long': [
    (db) => shortenLeases(db as Writer, 1),
    /SCAN renewals USING INDEX renewals_open/,
  ],
  'a page of the watched certificates': [
    (db) => pageWatched(db, 'a', 10, { hasLabels: true }),
    /SEARCH certificates USING INDEX sqlite_autoindex_certificates_1 \(name>\?\)/,
  ],
  'the expiring certificates of a range': [
    (db) => listExpiringCertificates(db, 1, { after: 1, last: 2 }, 10),
    /SEARCH v USING INDEX sqlite_autoindex_certificate_versions_1 \(certificate_id>\? AND certificate_id<\?\)/,
    'sorts',
  ],
  'the expiring API keys of a range': [
    (db) => listExpiringApiKeys(db, 1, { after: 1, last: 2 }, 10),
    /SEARCH k USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
  ],
  'a range of certificates': [
    (db) => nextRange(db, 'certificates', 1, 10),
    /SEARCH certificates USING (COVERING INDEX|INTEGER PRIMARY KEY) .*\(rowid>\?\)/,
  ],
  'the time at which the next renewal is due': [
    (db) => nextMoment(db, 1),
    /SEARCH certificates USING COVERING INDEX certificates_by_next_renewal \(.*next_renewal_at>\?\)/,
  ],
  'the certificates whose renewal window is due to be checked': [
    (db) => listAriDue(db, 1, 10),
    /SEARCH certificates USING INDEX certificates_by_ari_check \(.*ari_check_at<\?\)/,
  ],
  'some certificates to reschedule': [
    (db) => listPlanned(db, [1, 2, 3]),
    /SEARCH certificates USING INTEGER PRIMARY KEY/,
  ],
  'a page of the certificates that are planned': [
    (db) => pagePlanned(db, 1, 10),
    /SEARCH certificates USING INTEGER PRIMARY KEY \(rowid>\?\)/,
  ],
  'an account of an ACME client by its key': [
    (db) => findClientAccountByKey(db, 1, 'x'),
    /SEARCH acme_client_accounts USING INDEX .*\(issuer_id=\? AND thumbprint=\?\)/,
  ],
  'a page of the orders of an account': [
    (db) => pageClientOrders(db, 1, { before: 5, limit: 10 }),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_by_account \(account_id=\? AND id<\?\)/,
  ],
  'the last order that counts for the rate of an ACME client': [
    (db) => orderedBeforeLast(db, 1, { count: 300, since: 1 }),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_by_client \(acme_client_id=\? AND created_at>\?\)/,
  ],
  'the open orders of an ACME client': [
    (db) => countClientOrders(db, 1, { now: 1, since: 1, limit: 1000 }),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_open \(acme_client_id=\? AND expires_at>\?\)/,
  ],
  'the failed orders of an ACME client': [
    (db) => countClientOrders(db, 1, { now: 1, since: 1, limit: 1000 }),
    /SEARCH acme_client_orders USING COVERING INDEX acme_client_orders_failed \(acme_client_id=\? AND finished_at>\?\)/,
  ],
  'the account of an ACME client beyond its limit': [
    (db) => hasMoreAccounts(db, 1, 10_000),
    /SEARCH acme_client_accounts USING COVERING INDEX .*\(acme_client_id=\?\)/,
  ],
  'the order that replaces a certificate': [
    (db) => isReplaced(db, 'x', 1),
    /SEARCH acme_client_orders USING INDEX acme_client_orders_by_replaced \(replaces=\?\)/,
  ],
  'the challenge for a token': [
    (db) => findHttpChallenge(db, 'x'),
    /SEARCH acme_challenges USING INDEX acme_challenges_by_token \(token=\?\)/,
  ],
  'the newest challenge for a name': [
    (db) => findTlsAlpnChallenge(db, 'a.example'),
    /SEARCH acme_challenges USING INDEX acme_challenges_by_identifier \(identifier=\?\)/,
  ],
  'the challenges of a renewal': [
    (db) => listRenewalChallenges(db, 1),
    /SEARCH acme_challenges USING INDEX acme_challenges_by_renewal \(renewal_id=\?\)/,
  ],
  'the renewal that a challenge is for': [
    (db) => listLeftoverChallenges(db),
    /SEARCH renewals USING INTEGER PRIMARY KEY/,
  ],
  'the certificates of replacements whose renewal is due': [
    (db) => dueReplacementRenewals(db, 1, 100),
    /SEARCH replacement_certificates USING INDEX replacement_certificates_by_turn \(state=\? AND next_at<\?\)/,
    'sorts',
  ],
  'the certificates of replacements whose places are due': [
    (db) => dueReplacementChecks(db, 1, 100),
    /SEARCH replacement_certificates USING INDEX replacement_certificates_by_turn \(state=\? AND next_at<\?\)/,
    'sorts',
  ],
  'the open certificates of a replacement': [
    (db) => isReplacementOpen(db, 1),
    /SEARCH replacement_certificates USING INDEX replacement_certificates_open \(replacement_id=\?\)/,
  ],
  'the compromised versions of a certificate': [
    (db) => findCompromisedVersions(db, 1),
    /SEARCH replacement_certificates USING INDEX replacement_certificates_by_certificate \(certificate_id=\?\)/,
  ],
  'the CA behind an issuer': [(db) => findAcmeIssuer(db, 1), /SEARCH acme_issuers USING INTEGER PRIMARY KEY/],
  'an issuer by its id': [(db) => findIssuerById(db, 1), /SEARCH issuers USING INTEGER PRIMARY KEY/],
  'a renewal': [(db) => findRenewal(db, 1), /SEARCH renewals USING INTEGER PRIMARY KEY/],
  'the roots of a private CA': [
    (db) => findRoot(db, 1),
    /SEARCH ca_certificates USING INDEX ca_certificates_by_role/,
    'sorts',
  ],
  'the newest intermediates of a root': [
    (db) => listIntermediates(db, { id: 1 }),
    /SEARCH ca_certificates USING INDEX ca_certificates_by_signer/,
  ],
  'the settings of a private CA': [
    (db) => findPrivateCa(db, 1),
    /SEARCH private_cas USING INTEGER PRIMARY KEY/,
  ],
};

/** Tables that never grow: issuers, and the challenges of the moment, all of which are read. */
const mayBeWhole = new Set([
  ...['SCAN issuers', 'SCAN acme_challenges', 'SCAN blocks', 'SCAN CONSTANT ROW'],
  // Issuers and lanes of the queue, which the query itself has just listed.
  ...['SCAN asked', 'SCAN lanes', 'SCAN heads'],
  // The limited parts that it counts, and their counts.
  ...['SCAN span', 'SCAN open_orders', 'SCAN failed_orders', 'SCAN opened', 'SCAN ended'],
]);

const isSort = (detail: string) => detail.includes('TEMP B-TREE');

for (const [what, [query, step, sorts]] of Object.entries(searches)) {
  test(`the query for ${what} uses an index${sorts ? '' : ' and does not sort'}`, async () => {
    const plan = await plansOf(query);
    const whole = plan.filter((detail) => /^SCAN (?!.* INDEX )/.test(detail) && !mayBeWhole.has(detail));
    assert.deepEqual(whole, []);
    assert(
      plan.some((detail) => step.test(detail)),
      plan.join('\n'),
    );
    assert.equal(plan.some(isSort), sorts !== undefined, plan.join('\n'));
  });
}

test('the query for a page of the certificates of an API key uses its allowlist without a full scan', async () => {
  const page = { limit: 10, after: 'a', allowlistOf: 1 };
  const plan = await plansOf((db) => listCertificateSummaries(db, page));
  assert(plan.includes('SEARCH api_key_certificates USING PRIMARY KEY (api_key_id=?)'), plan.join('\n'));
  assert.deepEqual(
    plan.filter((detail) => detail.startsWith('SCAN')),
    [],
  );
});
