/**
 * Which commands work on a vault at a server, by which operations of its API, and why others do not. A test compares it
 * with all commands and all operations.
 */
import { Misuse } from '../terminal/misuse.ts';

const channelAdded = ['addNotificationChannel'];

/** The ids of the operations that each command uses. */
export const remoteCommands: Readonly<Record<string, readonly string[]>> = {
  'certificate create': ['createCertificate', 'getRenewalDetail', 'listVersions'],
  'certificate import': ['importCertificate'],
  'certificate export': [
    'getCertificate',
    'getCertificateSettings',
    'download_certificate_crt',
    'download_chain_crt',
    'download_fullchain_crt',
    'download_private_key',
    'download_combined_pem',
    'download_certificate_der',
    'download_keystore_p12',
    'download_archive_tar',
  ],
  'certificate list': ['listCertificates', 'listDeletedCertificates', 'listIssuers'],
  'certificate show': [
    'getCertificate',
    'getCertificateSettings',
    'listRenewalsOfCertificate',
    'listVersions',
    'getRollout',
  ],
  'certificate renew': ['renewCertificate', 'getCertificateSettings', 'getRenewalDetail', 'listVersions'],
  'certificate update': ['changeCertificate', 'getCertificateSettings', 'getCertificate', 'renewCertificate'],
  'certificate revoke': ['revokeCertificate'],
  'certificate delete': ['deleteCertificate', 'listDeletedCertificates'],
  'certificate undelete': ['listDeletedCertificates', 'restoreDeletedCertificate'],
  'certificate purge': ['listDeletedCertificates', 'purgeDeletedCertificate'],
  'renewals list': ['listRenewals', 'getCertificateSettings'],
  'replace start': [
    ...['previewReplacement', 'createReplacement', 'getReplacement', 'listReplacedCertificates'],
  ],
  'replace status': ['listReplacements', 'getReplacement', 'listReplacedCertificates'],
  'replace cancel': ['cancelReplacement'],
  'fleet status': [
    ...['listDeployments', 'listDeploymentsOfCertificate', 'getCertificateSettings', 'getRollout'],
  ],
  'fleet forget': ['listDeploymentsOfCertificate', 'deleteDeployment', 'getCertificateSettings'],
  'deploy-target add': ['addDeployTarget'],
  'deploy-target list': ['listDeployTargets'],
  'deploy-target show': ['getDeployTarget'],
  'deploy-target update': ['getDeployTarget', 'changeDeployTarget'],
  'deploy-target run': ['getDeployTarget', 'deployCertificate'],
  'deploy-target remove': ['removeDeployTarget'],
  'endpoint add': ['addEndpoint', 'getCertificateSettings'],
  'endpoint list': ['listEndpoints', 'getCertificateSettings'],
  'endpoint check': ['listEndpoints', 'checkEndpoint', 'getCertificateSettings'],
  'endpoint update': ['listEndpoints', 'changeEndpoint', 'getCertificateSettings'],
  'endpoint suggest': ['getCertificate', 'listEndpoints', 'getCertificateSettings'],
  'endpoint remove': ['listEndpoints', 'removeEndpoint'],
  'endpoint scan': ['createScan', 'getScan', 'listFindings'],
  'endpoint scans': ['listScans'],
  'endpoint remove-scan': ['deleteScan'],
  'endpoint found': ['listFindings'],
  'endpoint adopt': [
    ...['listFindings', 'getFinding', 'addEndpoint', 'createCertificate', 'importCertificate'],
  ],
  'api-key create': ['createApiKey'],
  'api-key list': ['listApiKeys'],
  'api-key update': ['listApiKeys', 'updateApiKey'],
  'api-key rotate': ['listApiKeys', 'rotateApiKey'],
  'api-key revoke': ['listApiKeys', 'revokeApiKey'],
  'api-key delete': ['listApiKeys', 'deleteApiKey'],
  'enrollment create': ['createEnrollment'],
  'enrollment list': ['listEnrollments', 'listApiKeys'],
  'enrollment show': ['listEnrollments', 'getEnrollment', 'listApiKeys'],
  'enrollment revoke': ['listEnrollments', 'revokeEnrollment'],
  'enrollment delete': ['listEnrollments', 'deleteEnrollment'],
  'acme-client create': ['createAcmeClient'],
  'acme-client list': ['listAcmeClients'],
  'acme-client show': ['listAcmeClients', 'getAcmeClient'],
  'acme-client update': ['listAcmeClients', 'getAcmeClient', 'updateAcmeClient'],
  'acme-client rotate': ['listAcmeClients', 'rotateAcmeClient'],
  'acme-client revoke': ['listAcmeClients', 'revokeAcmeClient'],
  'acme-client delete': ['listAcmeClients', 'deleteAcmeClient'],
  'admin create': ['createAdministrator'],
  'admin list': ['listAdministrators'],
  'admin update': ['updateAdministrator'],
  'admin delete': ['deleteAdministrator'],
  'notification add webhook': channelAdded,
  'notification add email': channelAdded,
  'notification add slack': channelAdded,
  'notification add teams': channelAdded,
  'notification add discord': channelAdded,
  'notification add telegram': channelAdded,
  'notification add ntfy': channelAdded,
  'notification add gotify': channelAdded,
  'notification add pagerduty': channelAdded,
  'notification add opsgenie': channelAdded,
  'notification list': ['listNotificationChannels'],
  'notification update': ['listNotificationChannels', 'changeNotificationChannel'],
  'notification remove': ['removeNotificationChannel'],
  'notification test': ['testNotificationChannel'],
  'notification log': ['listNotificationDeliveries'],
  'audit list': ['listAuditEvents'],
  'issuer add': ['addIssuer'],
  'issuer list': ['listIssuers'],
  'issuer update': ['listIssuers', 'changeIssuer'],
  'issuer remove': ['listIssuers', 'removeIssuer'],
  'issuer profile add': ['listIssuers', 'addProfile'],
  'issuer profile list': ['listIssuers', 'listProfiles'],
  'issuer profile show': ['listIssuers', 'getProfile'],
  'issuer profile update': ['listIssuers', 'changeProfile'],
  'issuer profile remove': ['listIssuers', 'removeProfile'],
  'acme-account list': ['listAcmeAccounts'],
  'acme-account rollover': ['rolloverAcmeAccount'],
  'acme-account deactivate': ['deactivateAcmeAccount'],
  'acme-account delete': ['listAcmeAccounts', 'deleteAcmeAccount'],
  'dns-provider add': ['addDnsProvider'],
  'dns-provider list': ['listDnsProviders'],
  'dns-provider remove': ['listDnsProviders', 'removeDnsProvider'],
  'dns-provider test': ['listDnsProviders', 'testDnsProvider'],
  'ca show': ['listIssuers', 'getPrivateCa'],
  'ca rotate': ['listIssuers', 'rotatePrivateCa'],
  'ca csr': ['listIssuers', 'requestPrivateCa'],
  'ca import': ['listIssuers', 'importPrivateCa'],
};

const serves = 'it starts a server';
const files = "it works on the vault's files";
const masterKey = 'the master key never leaves it';
const chain = 'it reads the whole audit log with its hashes';
const wayIn = 'it is the way in when nothing else works';
const program = 'the channel runs a program of that machine';
const state = "it reads and writes the vault's whole state";

/** Why the others do not, as the end of a sentence. */
export const hostCommands: Readonly<Record<string, string>> = {
  'ca export-root-key': 'the key of a root leaves the vault only for a file of that machine',
  'ca import-root-key': 'the key of a root does not travel over the network',
  serve: serves,
  demo: serves,
  'systemd-unit': 'it describes that machine',
  doctor: 'it checks that machine',
  'admin setup-link': wayIn,
  'admin reset-password': wayIn,
  'oidc test': "it reads that machine's settings",
  'notification add exec': program,
  'audit export': chain,
  'audit tail': chain,
  'audit checkpoint': chain,
  'audit verify': chain,
  'audit public-key': chain,
  backup: files,
  restore: files,
  'database copy': files,
  'database reopen': files,
  'master-key status': masterKey,
  'master-key rotate': masterKey,
  'master-key remove': masterKey,
  'master-key seal': masterKey,
  'master-key unseal': masterKey,
  apply: state,
  export: state,
};

/** They need no vault. */
export const placelessCommands: readonly string[] = [
  ...['inspect', 'completion', 'man', 'licenses', 'version', 'login', 'logout', 'dns-provider types'],
  'deploy-target types',
];

/** Throws Misuse for a command that works only on the vault's machine. */
export function refuseHostCommand(name: string): void {
  if (Object.hasOwn(remoteCommands, name) || placelessCommands.includes(name)) return;
  const why = Object.hasOwn(hostCommands, name) ? hostCommands[name] : files;
  throw new Misuse(
    `"${name}" works only on the vault's machine: ${why}`,
    'Run it there, without --server and CERTVAULT_SERVER.',
  );
}
