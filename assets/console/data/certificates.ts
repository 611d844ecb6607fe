/** All certificates, reloaded when one of them changes, but not at every step of a renewal. */
import { getPage } from './api.ts';
import { type Certificates, growingList } from './growing-list.ts';
import { type Resource, useLoaded } from './resource.ts';
import type { Certificate } from './shapes.ts';

/** Loads nothing unless `wanted`. */
export function useCertificates(wanted = true): Resource<Certificates> {
  return useLoaded(
    wanted ? '/certificates' : undefined,
    (path, show) => growingList(path, show, getPage<Certificate>),
    ({ kinds }) => kinds?.includes('vault') ?? true,
  );
}
