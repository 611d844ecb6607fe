/** What an examination of the vault finds: how each thing is, in a sentence, and what to do where it is not well. */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';

/** From the best to the worst; `skipped` is what could not be looked at because something else is in the way. */
const findingStatuses = ['ok', 'skipped', 'warning', 'failed'] as const;

export type FindingStatus = (typeof findingStatuses)[number];

export type Finding = {
  /** What was looked at, the same word at each examination: `disk`, `certificate`, `issuer` … */
  readonly check: string;
  readonly status: FindingStatus;
  /** The name of the one that is meant, where there are several. */
  readonly about?: string;
  readonly message: string;
  /** What to do now. */
  readonly hint?: string;
};

/** The worst of all; `ok` where nothing was found. */
export function worstOf(findings: readonly Finding[]): FindingStatus {
  const rank = ({ status }: Finding) => findingStatuses.indexOf(status);
  return findings.reduce<FindingStatus>(
    (worst, finding) => (rank(finding) > findingStatuses.indexOf(worst) ? finding.status : worst),
    'ok',
  );
}

/** A finding for what a check has thrown to tell people. Throws what is meant for nobody. */
export function findingFrom(error: unknown, check: string, about?: string): Finding {
  if (!(error instanceof OperatorError || error instanceof Problem)) throw error;
  const { message, hint } = error;
  return {
    check,
    status: 'failed',
    ...(about !== undefined && { about }),
    message,
    ...(hint !== undefined && { hint }),
  };
}
