/** Endpoints, reloaded when one of them is changed or serves something else, and when a certificate gets a version. */
import { get, getPage } from './api.ts';
import { type Growing, growingPages } from './growing-list.ts';
import type { Change } from './live.ts';
import { type Resource, useLoaded } from './resource.ts';
import type { Endpoint } from './shapes.ts';

export type Endpoints = Growing<Endpoint>;

const matters = ({ kinds }: Change) =>
  kinds?.some((kind) => kind === 'vault' || kind === 'endpoints') ?? true;

/** All endpoints of a list of the API, page by page. `undefined` loads nothing. */
export function useEndpoints(path: string | undefined): Resource<Endpoints> {
  return useLoaded(path, (from, show) => growingPages(from, show, getPage<Endpoint>), matters);
}

export function useEndpoint(id: string): Resource<Endpoint> {
  return useLoaded(`/endpoints/${encodeURIComponent(id)}`, get<Endpoint>, matters);
}
