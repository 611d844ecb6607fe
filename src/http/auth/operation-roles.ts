/** Who may call which operation: the table of the role that each operation of administrators needs at least. */
import type { Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';
import type { SecretState } from '../../domain/access/authentication.ts';
import {
  dependsOnLabels,
  type Identity,
  requireRole,
  requireScope,
  sessionNeeded,
} from '../../domain/access/identity.ts';
import type { Access, Route } from '../request/route.ts';
import { needsPathLabels, requireWithinReach } from './operation-reach.ts';

/** What needs credentials of a person or of a key. */
export type Guarded = Exclude<Access, { readonly kind: 'public' | 'metrics' }>;

/** By the id of the operation. Operations of API keys need scopes, which `rolesOfScopes` gives to people. */
export const operationRoles: Readonly<Record<string, Role>> = {
  ...all('viewer', [
    ...['getCertificateSettings', 'listApiKeysOfCertificate', 'listDeletedCertificates'],
    ...['listRenewals', 'getRenewalDetail', 'listRenewalsOfCertificate'],
    ...['listDeployments', 'listDeploymentsOfCertificate', 'getRollout'],
    ...['listEndpoints', 'getEndpoint'],
    ...['listDeployTargets', 'getDeployTarget', 'listDeployTargetTypes'],
    ...['listReplacements', 'getReplacement', 'listReplacedCertificates', 'previewReplacement'],
    ...['listScans', 'getScan', 'listFindings', 'getFinding'],
    ...['listApiKeys', 'listEnrollments', 'getEnrollment', 'listAcmeClients', 'getAcmeClient'],
    ...['listIssuers', 'listProfiles', 'getProfile', 'getPrivateCa', 'listAcmeAccounts'],
    ...['listDnsProviders', 'listDnsProviderTypes'],
    ...['listNotificationChannels', 'listNotificationChannelTypes', 'listNotificationDeliveries'],
    ...['listAuditEvents', 'exportAuditEvents', 'listen', 'getAbout', 'listAdministrators'],
    'listPendingChanges',
    // One's own session, password and second factors.
    ...['getSession', 'signOut', 'changePassword', 'listSessions', 'endSession'],
    ...['getSecondFactors', 'beginAuthenticatorApp', 'confirmAuthenticatorApp', 'removeAuthenticatorApp'],
    ...['renewRecoveryCodes', 'beginPasskey', 'createPasskey', 'renamePasskey', 'removePasskey'],
  ]),
  ...all('operator', [
    ...['createCertificate', 'ensureCertificate', 'changeCertificate', 'deleteCertificate'],
    ...['revokeCertificate', 'importCertificate', 'previewImport', 'restoreDeletedCertificate'],
    ...['addEndpoint', 'changeEndpoint', 'removeEndpoint', 'checkEndpoint', 'createScan', 'deleteScan'],
    ...['createReplacement', 'cancelReplacement'],
    // Of changes that need no greater role.
    ...['approvePendingChange', 'rejectPendingChange'],
    // Keys with no more rights than the caller has; anyone's key may have to end in a hurry.
    ...['createApiKey', 'revokeApiKey', 'createEnrollment', 'revokeEnrollment'],
  ]),
  ...all('admin', [
    'purgeDeletedCertificate',
    ...['updateApiKey', 'rotateApiKey', 'deleteApiKey', 'deleteEnrollment'],
    ...['createAcmeClient', 'updateAcmeClient', 'rotateAcmeClient', 'revokeAcmeClient', 'deleteAcmeClient'],
    ...['addIssuer', 'changeIssuer', 'testIssuer', 'removeIssuer'],
    ...['addProfile', 'changeProfile', 'removeProfile'],
    ...['rotatePrivateCa', 'requestPrivateCa', 'importPrivateCa'],
    // They bring private keys anywhere.
    ...['addDeployTarget', 'changeDeployTarget', 'removeDeployTarget', 'deployCertificate'],
    ...['addDnsProvider', 'removeDnsProvider', 'testDnsProvider'],
    ...['deleteAcmeAccount', 'rolloverAcmeAccount', 'deactivateAcmeAccount'],
    ...['addNotificationChannel', 'changeNotificationChannel', 'removeNotificationChannel'],
    'testNotificationChannel',
    ...['createAdministrator', 'updateAdministrator', 'deleteAdministrator', 'clearSecondFactors'],
  ]),
};

function all(role: Role, ids: readonly string[]): Record<string, Role> {
  return Object.fromEntries(ids.map((id) => [id, role]));
}

/** The role that an operation needs at least. Throws for one that is not in the table. */
export function roleFor(id: string): Role {
  const role = operationRoles[id];
  if (role === undefined) throw new Error(`operation-roles.ts does not say who may call ${id}`);
  return role;
}

/**
 * Throws `forbidden` if the caller may not do this, to the certificate `name` where a scope decides. `labels` are those
 * of the certificate in the path, if `needsLabels`.
 */
export function requireAccess(
  { id }: Route,
  access: Guarded,
  identity: Identity,
  name: string | undefined,
  labels: readonly string[],
): void {
  if (access.kind === 'scope') requireScope(identity, scopeFor(identity, access), name, labels);
  else if (access.kind !== 'authenticated') {
    requireRole(identity, roleFor(id));
    if (identity.kind === 'api-key' && isPersonal(access)) throw sessionNeeded();
    requireWithinReach(id, identity, labels);
  }
}

/** Whether the labels of the certificate `name` in the path decide about access. */
export function needsLabels({ id }: Route, access: Guarded, identity: Identity, name: string): boolean {
  if (access.kind === 'scope') return dependsOnLabels(identity, name);
  return identity.reach !== 'any' && needsPathLabels(id);
}

/** Whether it is about a session or its person. */
function isPersonal(access: Guarded): boolean {
  return access.kind === 'session' || (access.kind === 'administrator' && access.isPersonal === true);
}

/** The scope that decides: the alternative one if the caller has only that. */
function scopeFor(identity: Identity, { scope, orScope }: Extract<Access, { kind: 'scope' }>): Scope {
  if (identity.kind === 'administrator' || orScope === undefined) return scope;
  return !identity.scopes.has(scope) && identity.scopes.has(orScope) ? orScope : scope;
}

/** What the audit log shows of a refusal. */
export function detailOf(
  { id }: Route,
  access: Guarded,
  { role, reach }: Identity,
  state: SecretState,
): Readonly<Record<string, string>> {
  const reason = {
    ...(state !== 'active' && { reason: state }),
    ...(reach !== 'any' && { reach: reach.join() }),
  };
  if (!takesKeys(access)) {
    const needs = role === null ? { needs: 'administrator' } : { needs: roleFor(id), role };
    return { code: 'forbidden', ...needs, ...reason };
  }
  if (state !== 'active') return { code: 'unauthenticated', ...reason };
  return { code: 'forbidden', ...(access.kind === 'scope' && { scope: access.scope }), ...reason };
}

/** Whether API keys without a role may call such a route. */
export function takesKeys({ kind }: Guarded): boolean {
  return kind === 'scope' || kind === 'authenticated';
}
