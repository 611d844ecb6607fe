/** The table of all routes: everything that is served and described. */

import { acmeServerAccountRoutes } from '../acme-server/account-routes.ts';
import { acmeCertificateRoutes } from '../acme-server/certificate-routes.ts';
import { acmeDirectoryRoutes } from '../acme-server/directory-routes.ts';
import { acmeOrderRoutes } from '../acme-server/order-routes.ts';
import { openApiDocument } from '../openapi/openapi.ts';
import type { Route } from '../request/route.ts';
import { aboutRoutes } from '../routes/about-routes.ts';
import { administratorRoutes } from '../routes/access/administrator-routes.ts';
import { apiKeyRoutes } from '../routes/access/api-key-routes.ts';
import { deviceRoutes } from '../routes/access/device-routes.ts';
import { enrollmentRoutes } from '../routes/access/enrollment-routes.ts';
import { factorRoutes } from '../routes/access/factor-routes.ts';
import { oidcRoutes } from '../routes/access/oidc-routes.ts';
import { passkeyRoutes } from '../routes/access/passkey-routes.ts';
import { pendingChangeRoutes } from '../routes/access/pending-change-routes.ts';
import { sessionRoutes } from '../routes/access/session-routes.ts';
import { setupRoutes } from '../routes/access/setup-routes.ts';
import { whoamiRoutes } from '../routes/access/whoami-routes.ts';
import { acmeAccountRoutes } from '../routes/acme-account-routes.ts';
import { acmeChallengeRoutes } from '../routes/acme-challenge-routes.ts';
import { acmeClientRoutes } from '../routes/acme-client-routes.ts';
import { auditRoutes } from '../routes/audit-routes.ts';
import { artifactRoutes } from '../routes/certificates/artifact-routes.ts';
import { certificateAdminRoutes } from '../routes/certificates/certificate-admin-routes.ts';
import { certificateImportRoutes } from '../routes/certificates/certificate-import-routes.ts';
import { certificateRoutes } from '../routes/certificates/certificate-routes.ts';
import { deletedCertificateRoutes } from '../routes/certificates/deleted-certificate-routes.ts';
import { deploymentRoutes } from '../routes/certificates/deployment-routes.ts';
import { formatRoutes } from '../routes/certificates/format-routes.ts';
import { renewalRoutes } from '../routes/certificates/renewal-routes.ts';
import { replacementRoutes } from '../routes/certificates/replacement-routes.ts';
import { crlRoutes, namedCaRoutes } from '../routes/crl-routes.ts';
import { deployTargetRoutes } from '../routes/deploy-target-routes.ts';
import { dnsProviderRoutes } from '../routes/dns-provider-routes.ts';
import { endpointRoutes } from '../routes/endpoint-routes.ts';
import { eventRoutes } from '../routes/event-routes.ts';
import { type ClientScripts, installerRoutes } from '../routes/installer-routes.ts';
import { issuerProfileRoutes } from '../routes/issuer-profile-routes.ts';
import { issuerRoutes } from '../routes/issuer-routes.ts';
import { notificationRoutes } from '../routes/notification-routes.ts';
import { privateCaRoutes } from '../routes/private-ca-routes.ts';
import { publicRoutes } from '../routes/public-routes.ts';
import { scanRoutes } from '../routes/scan-routes.ts';

/** The routes of a server that serves these client scripts. */
export function routesWith(scripts: ClientScripts): readonly Route[] {
  const documents = new Map<string, unknown>();
  const routes: readonly Route[] = [
    ...publicRoutes((version) => {
      const made = documents.get(version) ?? openApiDocument(routes, version);
      documents.set(version, made);
      return made;
    }),
    ...acmeChallengeRoutes,
    ...acmeDirectoryRoutes,
    ...acmeServerAccountRoutes,
    ...acmeOrderRoutes,
    ...acmeCertificateRoutes,
    ...crlRoutes,
    ...namedCaRoutes,
    ...installerRoutes(scripts),
    ...certificateRoutes,
    ...certificateAdminRoutes,
    ...certificateImportRoutes,
    ...deletedCertificateRoutes,
    ...artifactRoutes,
    ...formatRoutes,
    ...renewalRoutes,
    ...replacementRoutes,
    ...deploymentRoutes,
    ...deployTargetRoutes,
    ...endpointRoutes,
    ...scanRoutes,
    ...apiKeyRoutes,
    ...enrollmentRoutes,
    ...acmeClientRoutes,
    ...issuerRoutes,
    ...issuerProfileRoutes,
    ...privateCaRoutes,
    ...dnsProviderRoutes,
    ...acmeAccountRoutes,
    ...notificationRoutes,
    ...pendingChangeRoutes,
    ...auditRoutes,
    ...eventRoutes,
    ...aboutRoutes,
    ...setupRoutes,
    ...sessionRoutes,
    ...factorRoutes,
    ...passkeyRoutes,
    ...oidcRoutes,
    ...deviceRoutes,
    ...whoamiRoutes,
    ...administratorRoutes,
  ];
  return routes;
}
