/** How the API, the console and the command line see deploy targets. */
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import {
  countTargetCertificates,
  type DeployTargetRow,
  type ListedTargetCertificateRow,
  listDeployTargets,
  listTargetCertificates,
} from '../../db/tables/deploy-targets.ts';
import type { DatabaseContext } from '../contexts.ts';
import { requireDeployTarget } from './deploy-targets.ts';

export const targetCertificateStates = ['current', 'waiting', 'failing'] as const;

export type TargetCertificateState = (typeof targetCertificateStates)[number];

export type TargetCertificateView = {
  certificate: string;
  destination: string;
  /** `waiting`: not installed yet, or not the current version. */
  state: TargetCertificateState;
  /** The version that is installed; null for none. */
  version: number | null;
  /** null before the first version. */
  current_version: number | null;
  /** Failed attempts in a row, and why the last of them failed. */
  attempts: number;
  error: string | null;
  /** When the vault installs it, or checks what is installed; null if it has nothing to do. */
  next_attempt_at: string | null;
};

export type DeployTargetSummary = {
  name: string;
  type: string;
  /** The machine or service. */
  host: string;
  /** How many certificates are in which state. */
  counts: Record<TargetCertificateState, number>;
  created_at: string;
  changed_at: string;
};

export type DeployTargetView = DeployTargetSummary & { certificates: TargetCertificateView[] };

/** The targets after the name `after`, by name, in portions of one. */
export async function* viewDeployTargets(
  { db }: DatabaseContext,
  after = '',
): AsyncGenerator<readonly DeployTargetSummary[]> {
  for (const row of await listDeployTargets(db.reader)) {
    if (row.name > after) yield [await summaryOf(db.reader, row)];
  }
}

/** One target with its certificates. Throws `deploy_target_not_found`. */
export async function viewDeployTarget({ db }: DatabaseContext, name: string): Promise<DeployTargetView> {
  const row = await requireDeployTarget(db.reader, name);
  const certificates = await listTargetCertificates(db.reader, row.id);
  return { ...(await summaryOf(db.reader, row)), certificates: certificates.map(targetCertificateView) };
}

async function summaryOf(reader: Reader, row: DeployTargetRow): Promise<DeployTargetSummary> {
  const { name, type, host } = row;
  const { all, failing, waiting } = await countTargetCertificates(reader, row.id);
  return {
    ...{ name, type, host },
    counts: { current: all - failing - waiting, waiting, failing },
    created_at: formatTimestamp(row.created_at),
    changed_at: formatTimestamp(row.changed_at),
  };
}

/** A certificate of a target as the API and the commands show it. */
export function targetCertificateView(row: ListedTargetCertificateRow): TargetCertificateView {
  const { certificate, destination, version, current_version, attempts, error } = row;
  return {
    ...{ certificate, destination },
    state: attempts > 0 ? 'failing' : version !== null && version === current_version ? 'current' : 'waiting',
    ...{ version, current_version, attempts, error },
    next_attempt_at: formatTimestampOrNull(row.due_at),
  };
}
