/** The table of all routes: everything that is served and described. */

import { openApiDocument } from '../openapi/openapi.ts';
import type { Route } from '../request/route.ts';
import { aboutRoutes } from './about-routes.ts';
import { acmeAccountRoutes } from './acme-account-routes.ts';
import { acmeChallengeRoutes } from './acme-challenge-routes.ts';
import { administratorRoutes } from './administrator-routes.ts';
import { apiKeyRoutes } from './api-key-routes.ts';
import { artifactRoutes } from './artifact-routes.ts';
import { auditRoutes } from './audit-routes.ts';
import { certificateAdminRoutes } from './certificate-admin-routes.ts';
import { certificateImportRoutes } from './certificate-import-routes.ts';
import { certificateRoutes } from './certificate-routes.ts';
import { deletedCertificateRoutes } from './deleted-certificate-routes.ts';
import { dnsProviderRoutes } from './dns-provider-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { installerRoutes } from './installer-routes.ts';
import { issuerRoutes } from './issuer-routes.ts';
import { notificationRoutes } from './notification-routes.ts';
import { publicRoutes } from './public-routes.ts';
import { renewalRoutes } from './renewal-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { setupRoutes } from './setup-routes.ts';
import { whoamiRoutes } from './whoami-routes.ts';

/** The routes of a server that serves this client installer (the text of assets/install.sh). */
export function routesWith(installer: string): readonly Route[] {
  const documents = new Map<string, unknown>();
  const routes: readonly Route[] = [
    ...publicRoutes((version) => {
      const made = documents.get(version) ?? openApiDocument(routes, version);
      documents.set(version, made);
      return made;
    }),
    ...acmeChallengeRoutes,
    ...installerRoutes(installer),
    ...certificateRoutes,
    ...certificateAdminRoutes,
    ...certificateImportRoutes,
    ...deletedCertificateRoutes,
    ...artifactRoutes,
    ...renewalRoutes,
    ...apiKeyRoutes,
    ...issuerRoutes,
    ...dnsProviderRoutes,
    ...acmeAccountRoutes,
    ...notificationRoutes,
    ...auditRoutes,
    ...eventRoutes,
    ...aboutRoutes,
    ...setupRoutes,
    ...sessionRoutes,
    ...whoamiRoutes,
    ...administratorRoutes,
  ];
  return routes;
}
