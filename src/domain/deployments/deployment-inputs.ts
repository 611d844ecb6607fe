/** What a client reports about a deployment, as the API takes it. */
import { z } from 'zod';
import { shortened } from '../../base/printable-text.ts';
import { timestamp } from '../input-strings.ts';

/** The maximum number of characters in each text of a report; longer ones are cut. */
export const longestText = 500;

/** A text without control characters, cut to `most` characters: no report fails because a program prints too much. */
function cleaned(most: number) {
  return z.string().transform((text) => shortened(text, most));
}

const optionalText = cleaned(longestText)
  .nullish()
  .transform((text) => text || null);

const step = z
  .object({
    result: z.enum(['ok', 'failed']),
    output: optionalText.describe('the last line of its output'),
  })
  .nullish()
  .transform((result) => result ?? null);

/** The id of a deployment, which the client chooses. */
export const deploymentName = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

/** The body of a report. Unknown members are ignored, so that newer clients work with an older vault. */
export const deploymentReport = z.object({
  host: cleaned(253).describe('name of the machine'),
  job: cleaned(128).describe("the client's name for the job"),
  destination: cleaned(longestText).describe('where the files are'),
  version: z
    .int()
    .min(1)
    .max(999_999_999)
    .nullish()
    .transform((version) => version ?? null)
    .describe('the version that is installed; null for none'),
  fingerprint_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits in lower case')
    .nullish()
    .transform((fingerprint) => fingerprint ?? null),
  reload: step.describe('null if there is no reload command, or if it has not run yet'),
  verify: step.describe('null if the client does not check what is served'),
  error: optionalText.describe('why the last run failed before the reload; null if it did not'),
  next_run_at: timestamp
    .nullish()
    .transform((at) => at ?? null)
    .describe('when the job runs next, RFC 3339'),
  client_version: cleaned(64)
    .nullish()
    .transform((version) => version || null),
});

export type DeploymentReport = z.output<typeof deploymentReport>;
