/** A finding of "vault doctor": the state of one part of the vault in a sentence, and what to do about it. */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';

/** From best to worst; `skipped` means that another problem prevented the check. */
const findingStatuses = ['ok', 'skipped', 'warning', 'failed'] as const;

export type FindingStatus = (typeof findingStatuses)[number];

export type Finding = {
  /** What was checked, stable between runs: `disk`, `certificate`, `issuer` … */
  readonly check: string;
  readonly status: FindingStatus;
  /** The name of the certificate, issuer or other object, where there can be several. */
  readonly about?: string;
  readonly message: string;
  /** What to do. A command stands on a line of its own, after `Fix:` or `Try:`. */
  readonly hint?: string;
};

/** The worst status of all findings; `ok` if there are none. */
export function worstOf(findings: readonly Finding[]): FindingStatus {
  const rank = ({ status }: Finding) => findingStatuses.indexOf(status);
  return findings.reduce<FindingStatus>(
    (worst, finding) => (rank(finding) > findingStatuses.indexOf(worst) ? finding.status : worst),
    'ok',
  );
}

/** The finding for an OperatorError or a Problem that a check threw. Rethrows anything else. */
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
