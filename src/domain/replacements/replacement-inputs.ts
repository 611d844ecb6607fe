/** What to replace, as the API and the command line take it. */
import { z } from 'zod';
import { day, hour, parseDuration } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import type { ReplacementReason } from '../../db/schema/schema-replacements.ts';
import { certName, knownIssuer, parsed, quoted } from '../input-strings.ts';
import { objectLabels } from '../labels/label-inputs.ts';

export const replacementReasons = ['superseded', 'ca-compromised', 'key-compromised'] as const;

/** In milliseconds: CAs must revoke the certificate of a compromised key within a day. */
const defaultDeadlines = {
  superseded: day,
  'ca-compromised': day,
  'key-compromised': hour,
} as const satisfies Record<ReplacementReason, number>;

const longestDeadline = 30 * day;

const deadline = parsed(
  (text) => {
    const ms = text === '0' ? 0 : parseDuration(text);
    return ms !== undefined && ms <= longestDeadline ? ms : undefined;
  },
  (text) => `${quoted(text)} is not a deadline: write a number and m, h or d, up to 30d, such as 4h, or 0`,
  { pattern: '^(0|[1-9]\\d{0,5}[mhdy])$' },
).describe(
  'after which old versions are revoked even if new ones are not live everywhere; 0 revokes as soon as the new version is issued; by default 1h for a compromised key, otherwise 24h',
);

export const replacementInput = z.strictObject({
  issuer: knownIssuer.optional().describe('all certificates whose current version this issuer issued'),
  labels: objectLabels.optional().describe('all certificates with all of these labels'),
  certificate: certName.optional().describe('one certificate'),
  reason: z
    .enum(replacementReasons)
    .optional()
    .describe(
      'key-compromised replaces the private key, too; by default key-compromised for one certificate, otherwise superseded',
    ),
  deadline: deadline.optional(),
});

/** Which certificates; one of the three is set. */
export type ReplacementSelection = {
  readonly issuer: string | undefined;
  readonly labels: readonly string[] | undefined;
  readonly certificate: string | undefined;
};

export type ReplacementRequest = {
  readonly selection: ReplacementSelection;
  readonly reason: ReplacementReason;
  /** From now, in milliseconds. */
  readonly deadline: number;
};

/** The input with its defaults. Throws `invalid_request` unless it selects certificates in one way. */
export function replacementRequest(input: z.output<typeof replacementInput>): ReplacementRequest {
  const { issuer, certificate } = input;
  const labels = input.labels === undefined || input.labels.length === 0 ? undefined : input.labels;
  const given = [issuer, labels, certificate].filter((one) => one !== undefined);
  if (given.length !== 1) {
    const message = 'select certificates by one of issuer, labels and certificate';
    throw new Problem('invalid_request', {
      detail: `Select certificates by one of "issuer", "labels" and "certificate".`,
      errors: [{ path: '', message }],
    });
  }
  const reason = input.reason ?? (certificate === undefined ? 'superseded' : 'key-compromised');
  return {
    selection: { issuer, labels, certificate },
    reason,
    deadline: input.deadline ?? defaultDeadlines[reason],
  };
}
