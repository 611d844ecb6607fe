/** What a replacement would do, and who is affected. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { pageOfApiKeys } from '../access/api-key-views.ts';
import type { LoggedContext } from '../contexts.ts';
import type { ReplacementRequest } from './replacement-inputs.ts';
import { namedPlaces } from './replacement-places.ts';
import { type Permits, type SelectedCertificate, selectedCertificates } from './replacement-selection.ts';

export type AffectedCertificateView = {
  certificate: string;
  /** The version that would be revoked. */
  version: number;
  serial: string;
  not_after: string;
  /** Why the vault cannot replace it; null if it can. */
  obstacle: string | null;
  /** Hosts whose clients reported that they install it, up to a hundred. */
  hosts: string[];
  /** Endpoints that are expected to serve it, up to a hundred. */
  endpoints: string[];
  /** Active API keys that may read it, up to a hundred. */
  api_keys: string[];
};

export type PreviewView = {
  /** How many the vault would replace. */
  replaced: number;
  /** How many require action. */
  obstructed: number;
  /** Up to `mostShown` of them. */
  certificates: AffectedCertificateView[];
};

/** Certificates in a preview. */
export const mostShown = 10_000;

/** More are of no use to a reader. */
const namesShown = 100;

/**
 * What is affected by a replacement that is not carried out. `reach` confines the API keys that are shown. Throws what
 * the selection throws.
 */
export async function previewReplacement(
  vault: LoggedContext,
  request: Pick<ReplacementRequest, 'selection' | 'reason'>,
  {
    permits = () => true,
    reach,
  }: { readonly permits?: Permits; readonly reach?: readonly string[] | undefined } = {},
): Promise<PreviewView> {
  const certificates: AffectedCertificateView[] = [];
  const counts = { replaced: 0, obstructed: 0 };
  for await (const rows of selectedCertificates(vault, request, permits)) {
    for (const row of rows) {
      counts[row.obstacle === undefined ? 'replaced' : 'obstructed'] += 1;
      if (certificates.length === mostShown) continue;
      certificates.push(await affectedView(vault, row, reach));
      await vault.world.turn();
    }
  }
  return { ...counts, certificates };
}

async function affectedView(
  vault: LoggedContext,
  { certificate: { id, name }, current, obstacle }: SelectedCertificate,
  reach: readonly string[] | undefined,
): Promise<AffectedCertificateView> {
  const active = { limit: namesShown, reach, activeAt: vault.world.now() };
  const keys = await pageOfApiKeys(vault, active, name);
  return {
    certificate: name,
    version: current.version,
    serial: current.serial,
    not_after: formatTimestamp(current.not_after),
    obstacle: obstacle ?? null,
    ...(await namedPlaces(vault, id, namesShown)),
    api_keys: keys.map((key) => key.name),
  };
}
