/** References of the document to what is elsewhere. */
import { z } from 'zod';

/** The name of a file. */
export const path = z.string().min(1, 'a file name is required');

/** Where a secret is; never the secret. */
export const secretReference = z
  .union(
    [
      z.literal('keep'),
      z.strictObject({ file: path.describe('the file, relative to the document') }),
      z.strictObject({ env: path.describe('the name of an environment variable') }),
    ],
    {
      error:
        'secrets do not belong in this file: write {file: NAME}, {env: NAME}, or keep for the stored secret',
    },
  )
  .describe('{file: NAME}, {env: NAME}, or keep for the stored secret');

export type SecretReference = z.output<typeof secretReference>;
