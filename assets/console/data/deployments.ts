/** Deployments, reloaded when a client reports something new or a certificate gets another version. */
import { getPage } from './api.ts';
import { type Growing, growingPages } from './growing-list.ts';
import { type Resource, useLoaded } from './resource.ts';
import type { Deployment } from './shapes.ts';

export type Deployments = Growing<Deployment>;

/** All deployments of a list of the API, page by page. `undefined` loads nothing. */
export function useDeployments(path: string | undefined): Resource<Deployments> {
  return useLoaded(
    path,
    (from, show) => growingPages(from, show, getPage<Deployment>),
    ({ kinds }) => kinds?.some((kind) => kind !== 'renewals') ?? true,
  );
}
