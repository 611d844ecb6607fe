/** What people send to manage their second factors and to sign in with them. */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import { typedPassword } from '../access/administrator-inputs.ts';
import { maxStateLength } from './sealed-state.ts';

/** A code of an authenticator app or a recovery code, as typed. */
const typedCode = z
  .string()
  .min(1, 'code is missing')
  .max(64, 'a code has at most 64 characters')
  .regex(/^[A-Za-z0-9 -]+$/, 'a code has digits and letters')
  .transform((text) => new Secret(text));

/** The sealed state of a set-up. */
export const pendingText = z
  .string()
  .max(maxStateLength)
  .regex(/^[\w-]+$/, 'pending is the text from the beginning of the set-up')
  .describe('what the beginning of the set-up returned; valid for five minutes, for this session, once');

/** The second step of a sign-in. */
export const secondStepInput = z.strictObject({ code: typedCode });

/** A stolen session must not change how its person signs in. */
export const passwordInput = z.strictObject({ password: typedPassword });

export const confirmAppInput = z.strictObject({ pending: pendingText, code: typedCode });

export type ConfirmAppInput = z.output<typeof confirmAppInput>;
