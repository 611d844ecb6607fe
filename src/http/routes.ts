/** The table of all routes. What stands here is served and described; nothing else is. */
import { acmeAccountRoutes } from './acme-account-routes.ts';
import { acmeChallengeRoutes } from './acme-challenge-routes.ts';
import { artifactRoutes } from './artifact-routes.ts';
import { certificateRoutes } from './certificate-routes.ts';
import { installerRoutes } from './installer-routes.ts';
import { openApiDocument } from './openapi.ts';
import { publicRoutes } from './public-routes.ts';
import type { Route } from './route.ts';

/** The routes of a server that hands out this client installer (the text of assets/install.sh). */
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
    ...artifactRoutes,
    ...acmeAccountRoutes,
  ];
  return routes;
}
