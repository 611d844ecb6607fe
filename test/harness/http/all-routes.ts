/** All routes of `vault serve`. */
import { readAsset, readInstaller } from '../../../src/cli/runtime/assets.ts';
import { routesWith } from '../../../src/http/server/routes.ts';

export const routes = routesWith({
  installer: readInstaller(),
  trust: readAsset('install-ca.sh'),
});
