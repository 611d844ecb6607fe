/** Input schemas for changes of an API key, shared by the API and the command line. */
import { z } from 'zod';
import { day, parseDuration } from '../../base/duration.ts';
import { parsed, quoted } from '../input-strings.ts';
import { createApiKeyInput } from '../inputs.ts';

/** How long the old secret of an API key may stay valid. */
const maxOverlap = 365 * day;

const overlap = parsed(
  (text) => {
    const ms = text === '0' ? 0 : parseDuration(text);
    return ms !== undefined && ms <= maxOverlap ? ms : undefined;
  },
  (text) =>
    `${quoted(text)} is not an overlap: write a number and m, h, d or y, up to 1y, such as 7d; or 0 to end the old key at once`,
  { pattern: '^(0|[1-9]\\d{0,5}[mhdy])$' },
);

export const rotateApiKeyInput = z.strictObject({
  overlap: overlap.prefault('7d').describe('how long the old key stays valid, such as 7d; 0 ends it at once'),
});

export type RotateApiKeyInput = z.output<typeof rotateApiKeyInput>;

const { name, scopes, expires_at, ...withDefaults } = createApiKeyInput.shape;
const { certificates, certificate_labels, reach, labels, ...others } = withDefaults;
const { allowed_networks, profiles, role, client_certificate } = others;

/** Changes to an API key; lists replace the current ones, and null clears a setting. */
export const updateApiKeyInput = z.strictObject({
  name: name.optional(),
  scopes: scopes.optional(),
  // Without their defaults, which would clear them at every change.
  certificates: certificates.unwrap().optional(),
  certificate_labels: certificate_labels.unwrap().optional(),
  reach: reach.unwrap().optional(),
  labels: labels.unwrap().optional(),
  allowed_networks: allowed_networks.unwrap().optional(),
  profiles: profiles.unwrap().optional(),
  role: role.unwrap().optional(),
  client_certificate: client_certificate.unwrap().optional(),
  expires_at: expires_at.nullable(),
});

export type UpdateApiKeyInput = z.output<typeof updateApiKeyInput>;
