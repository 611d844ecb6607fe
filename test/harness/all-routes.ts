/** All routes of `vault serve`. */
import { readAsset } from '../../src/cli/runtime/assets.ts';
import { routesWith } from '../../src/http/routes/routes.ts';

export const routes = routesWith({
  installer: readAsset('install.sh'),
  trust: readAsset('install-ca.sh'),
});
