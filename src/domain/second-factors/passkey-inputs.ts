/** What browsers send of passkeys, with bounds: `PublicKeyCredential.toJSON()` (WebAuthn §5.1). */
import { z } from 'zod';
import { label } from '../input-strings.ts';
import { pendingText } from './factor-inputs.ts';

/** Longer than any real credential: ids have at most 1023 bytes (WebAuthn §4). */
const base64url = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\w-]+$/, 'not base64url');

const id = base64url(1400);

const type = z.literal('public-key');

const clientDataJSON = base64url(8000);

/** Browsers add members that the vault does not need. */
export const registrationResponse = z.object({
  id,
  rawId: id,
  type,
  response: z.object({
    clientDataJSON,
    attestationObject: base64url(16_000),
    transports: z
      .array(z.string().regex(/^[a-z-]{1,32}$/, 'not a transport'))
      .max(16)
      .default([]),
  }),
});

export type RegistrationResponse = z.output<typeof registrationResponse>;

const passkeyName = label.describe('a name by which the person knows the passkey');

export const createPasskeyInput = z.strictObject({
  pending: pendingText,
  name: passkeyName,
  response: registrationResponse,
});

export type CreatePasskeyInput = z.output<typeof createPasskeyInput>;

export const renamePasskeyInput = z.strictObject({ name: passkeyName });

export const passkeySignInInput = z.object({
  id,
  rawId: id,
  type,
  response: z.object({
    clientDataJSON,
    authenticatorData: base64url(4000),
    signature: base64url(8000),
    userHandle: base64url(100),
  }),
});

export type PasskeySignInInput = z.output<typeof passkeySignInInput>;
