/** The routes as `vault serve` has them. */
import { readAsset } from '../../src/cli/assets.ts';
import { routesWith } from '../../src/http/routes.ts';

export const routes = routesWith(readAsset('install.sh'));
