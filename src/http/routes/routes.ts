/** The table of all routes: everything that is served and described. */

import { acmeServerAccountRoutes } from '../acme-server/account-routes.ts';
import { acmeCertificateRoutes } from '../acme-server/certificate-routes.ts';
import { acmeDirectoryRoutes } from '../acme-server/directory-routes.ts';
import { acmeOrderRoutes } from '../acme-server/order-routes.ts';
import { openApiDocument } from '../openapi/openapi.ts';
import type { Route } from '../request/route.ts';
import { aboutRoutes } from './about-routes.ts';
import { acmeAccountRoutes } from './acme-account-routes.ts';
import { acmeChallengeRoutes } from './acme-challenge-routes.ts';
import { acmeClientRoutes } from './acme-client-routes.ts';
import { administratorRoutes } from './administrator-routes.ts';
import { apiKeyRoutes } from './api-key-routes.ts';
import { artifactRoutes } from './artifact-routes.ts';
import { auditRoutes } from './audit-routes.ts';
import { certificateAdminRoutes } from './certificate-admin-routes.ts';
import { certificateImportRoutes } from './certificate-import-routes.ts';
import { certificateRoutes } from './certificate-routes.ts';
import { crlRoutes, namedCaRoutes } from './crl-routes.ts';
import { deletedCertificateRoutes } from './deleted-certificate-routes.ts';
import { dnsProviderRoutes } from './dns-provider-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { formatRoutes } from './format-routes.ts';
import { type ClientScripts, installerRoutes } from './installer-routes.ts';
import { issuerProfileRoutes } from './issuer-profile-routes.ts';
import { issuerRoutes } from './issuer-routes.ts';
import { notificationRoutes } from './notification-routes.ts';
import { privateCaRoutes } from './private-ca-routes.ts';
import { publicRoutes } from './public-routes.ts';
import { renewalRoutes } from './renewal-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { setupRoutes } from './setup-routes.ts';
import { whoamiRoutes } from './whoami-routes.ts';

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
    ...apiKeyRoutes,
    ...acmeClientRoutes,
    ...issuerRoutes,
    ...issuerProfileRoutes,
    ...privateCaRoutes,
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
