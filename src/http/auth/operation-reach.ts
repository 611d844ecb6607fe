/**
 * What a reach leaves of each operation: the table of the operations that people and keys may call whose reach is bound
 * to labels. They may not call any other.
 */
import { type Identity, requireRole } from '../../domain/access/identity.ts';
import { requireNoReach, requireReach } from '../../domain/labels/reach.ts';

/**
 * `open`: about how the vault is set up, or about oneself. `certificate`: about the certificate in the path. `handler`:
 * the handler shows and takes only what is within the reach.
 */
type Rule = 'open' | 'certificate' | 'handler';

/** By the id of the operation, for those of administrators. */
export const operationReach: Readonly<Record<string, Rule>> = {
  ...all('open', [
    ...[
      'listIssuers',
      'listProfiles',
      'getProfile',
      'getPrivateCa',
      'listDnsProviders',
      'listDnsProviderTypes',
    ],
    ...['listDeployTargetTypes', 'listNotificationChannelTypes', 'getAbout', 'listen', 'previewImport'],
    ...['getSession', 'signOut', 'changePassword', 'listSessions', 'endSession'],
    ...['getSecondFactors', 'beginAuthenticatorApp', 'confirmAuthenticatorApp', 'removeAuthenticatorApp'],
    ...['renewRecoveryCodes', 'beginPasskey', 'createPasskey', 'renamePasskey', 'removePasskey'],
  ]),
  ...all('certificate', [
    ...['getCertificateSettings', 'listRenewalsOfCertificate', 'changeCertificate', 'deleteCertificate'],
    ...['revokeCertificate', 'listDeploymentsOfCertificate', 'getRollout'],
  ]),
  ...all('handler', [
    ...['createCertificate', 'ensureCertificate', 'importCertificate', 'listApiKeysOfCertificate'],
    ...['listRenewals', 'getRenewalDetail', 'listApiKeys', 'createApiKey', 'revokeApiKey'],
    ...['listEnrollments', 'getEnrollment', 'createEnrollment', 'revokeEnrollment'],
    ...['listAcmeClients', 'getAcmeClient', 'listNotificationChannels', 'listDeployments'],
    ...['listEndpoints', 'addEndpoint', 'getEndpoint', 'changeEndpoint', 'removeEndpoint', 'checkEndpoint'],
    ...['listReplacements', 'getReplacement', 'listReplacedCertificates', 'previewReplacement'],
    ...['createReplacement', 'cancelReplacement'],
  ]),
};

function all(rule: Rule, ids: readonly string[]): Record<string, Rule> {
  return Object.fromEntries(ids.map((id) => [id, rule]));
}

/** Whether the labels of the certificate in the path decide. */
export function needsPathLabels(id: string): boolean {
  return operationReach[id] === 'certificate';
}

/** Throws `forbidden` if the reach of the caller leaves nothing of the operation. */
export function requireWithinReach(id: string, identity: Identity, labels: readonly string[]): void {
  const rule = operationReach[id];
  if (rule === undefined) requireNoReach(identity);
  if (rule === 'certificate') requireReach(identity, labels);
}

/** Throws `forbidden` unless the caller may change the labels of what exists: others get access by them. */
export function requireLabelling(identity: Identity): void {
  requireRole(identity, 'admin');
}
