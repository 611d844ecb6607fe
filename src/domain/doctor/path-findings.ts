/** Findings about paths that other users can change: programs that the vault runs, and places where it writes. */
import type { Judged, Untrusted } from '../../base/paths/trusted-path.ts';
import type { Finding } from './finding.ts';

/** A failure for what the vault refuses, and a warning for what it accepts from a group; none if the path is fine. */
export function pathFindings(path: string, { refused, tolerated }: Judged): Finding[] {
  const finding = (status: Finding['status'], found: Untrusted | undefined): Finding[] =>
    found === undefined ? [] : [{ check: 'permissions', status, about: path, ...found }];
  return [...finding('failed', refused), ...finding('warning', tolerated)];
}
