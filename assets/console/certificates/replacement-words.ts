/** Emergency replacements in words, and the request that a form describes. */
import {
  type AffectedCertificate,
  type ReplacedState,
  type Replacement,
  type ReplacementReason,
  replacedStates,
} from '../data/replacement-shapes.ts';
import { labelsIn } from '../text/label-list.ts';

export type Selection = 'certificate' | 'issuer' | 'labels';

export type ReplacementDraft = {
  readonly selection: Selection;
  readonly certificate: string;
  readonly issuer: string;
  readonly labels: string;
  readonly reason: ReplacementReason;
  readonly deadline: string;
};

export const reasonTexts: Readonly<Record<ReplacementReason, string>> = {
  'key-compromised': 'Private key compromised',
  'ca-compromised': 'CA compromised',
  superseded: 'Superseded',
};

export const stateTones = {
  ...({ failed: 'bad', waiting: 'accent', renewing: 'accent', issued: 'accent' } as const),
  ...({ live: 'accent', revoked: 'good', canceled: 'quiet' } as const),
} satisfies Readonly<Record<ReplacedState, string>>;

/** The reason that a form suggests for a selection, as the API does. */
export function usualReason(selection: Selection): ReplacementReason {
  return selection === 'certificate' ? 'key-compromised' : 'superseded';
}

/** The body of the request. */
export function requestOf(draft: ReplacementDraft) {
  const { selection, reason, deadline } = draft;
  const value = selection === 'labels' ? labelsIn(draft.labels) : draft[selection].trim();
  return { [selection]: value, reason, ...(deadline.trim() !== '' && { deadline: deadline.trim() }) };
}

/** Whether the form selects anything. */
export function selectsAny({ selection, ...draft }: ReplacementDraft): boolean {
  return selection === 'labels' ? labelsIn(draft.labels).length > 0 : draft[selection].trim() !== '';
}

/** "Certificates of the issuer local-ca". */
export function selectionText({
  issuer,
  labels,
  certificate,
}: Pick<Replacement, 'issuer' | 'labels' | 'certificate'>): string {
  if (certificate !== null) return `Certificate ${certificate}`;
  if (issuer !== null) return `Certificates of the issuer ${issuer}`;
  return `Certificates with ${labels.join(', ')}`;
}

/** "3 of 8 revoked, 1 failed". */
export function progressText({ certificates }: Pick<Replacement, 'certificates'>): string {
  const total = replacedStates.reduce((sum, state) => sum + certificates[state], 0);
  const { revoked, failed, canceled } = certificates;
  return [
    `${revoked.toLocaleString()} of ${total.toLocaleString()} revoked`,
    failed > 0 && `${failed.toLocaleString()} failed`,
    canceled > 0 && `${canceled.toLocaleString()} canceled`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** "1 certificate", "2,000 certificates". */
export function certificateCount(count: number): string {
  return count === 1 ? '1 certificate' : `${count.toLocaleString()} certificates`;
}

/** Certificates that require action first, and otherwise in their order. */
export function byObstacle(certificates: readonly AffectedCertificate[]): AffectedCertificate[] {
  return certificates.toSorted(
    (one, other) => Number(one.obstacle === null) - Number(other.obstacle === null),
  );
}

const namesShown = 3;

/** "web1, web2, web3 and 4 more"; empty without names. */
export function fewNames(names: readonly string[]): string {
  const more = names.length - namesShown;
  const shown = names.slice(0, namesShown).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
