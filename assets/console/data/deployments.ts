/** Deployments, reloaded when a client reports something new or a certificate gets another version. */
import { get, getPage } from './api.ts';
import { type Growing, growingPages } from './growing-list.ts';
import type { Change } from './live.ts';
import { type Resource, useLoaded } from './resource.ts';
import type { Deployment, Rollout } from './shapes.ts';

export type Deployments = Growing<Deployment>;

const matters = ({ kinds }: Change) =>
  kinds?.some((kind) => kind === 'vault' || kind === 'deployments') ?? true;

/** All deployments of a list of the API, page by page. `undefined` loads nothing. */
export function useDeployments(path: string | undefined): Resource<Deployments> {
  return useLoaded(path, (from, show) => growingPages(from, show, getPage<Deployment>), matters);
}

/** The rollout of the certificate at this path. */
export function useRollout(path: string): Resource<Rollout> {
  return useLoaded(`${path}/rollout`, get<Rollout>, matters);
}
