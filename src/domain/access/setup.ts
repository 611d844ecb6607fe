/** The setup link: a one-time link that creates the first administrator, shown at the start of a vault without any. */

import { z } from 'zod';
import { day } from '../../base/duration.ts';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { asciiNetstring } from '../../base/netstring.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import {
  createSetupToken,
  sessionTokenCreator,
  setupTokenMatches,
} from '../../crypto/secrets/session-token.ts';
import type { Reader } from '../../db/database.ts';
import { hasAdministrators, setLastSignedIn } from '../../db/tables/access/administrators.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { createAdministratorInput } from './administrator-inputs.ts';
import { addAdministrator } from './administrators.ts';
import type { SignedIn, Visitor } from './identity.ts';
import type { SignIn, SignInContext } from './sign-in.ts';

/** How long a setup link is valid, in milliseconds. */
export const setupLifetime = day;

export const setupInput = createAdministratorInput.extend({
  token: z
    .string()
    .max(256)
    .meta({ pattern: '^[\\x21-\\x7e]+$' })
    .transform((text) => new Secret(text)),
});

export type SetupInput = z.output<typeof setupInput>;

/** Whether there is no administrator yet. */
export async function needsSetup({ db }: DatabaseContext): Promise<boolean> {
  return !(await hasAdministrators(db.reader));
}

/** A new setup token, which replaces any earlier one; undefined if there is an administrator. */
export async function offerSetup(
  { db, world }: TimedContext,
  actor: Actor,
): Promise<Secret<string> | undefined> {
  if (await hasAdministrators(db.reader)) return undefined;
  const { token, idHash } = createSetupToken(world);
  await db.write(async (writer) => {
    const expiresAt = world.now() + setupLifetime;
    record(writer, { actor, action: 'setup_link.create', resource: 'setup' }, world.now());
    await putSetting(writer, 'setup-token-hash', idHash);
    await putSetting(writer, 'setup-token-expires-at', expiresAt);
    const tag = requireIntegrity(writer).tag('setup link', tagText(idHash, expiresAt));
    await putSetting(writer, 'setup-token-tag', tag);
  });
  return token;
}

/**
 * Creates the first administrator and signs them in. Throws `forbidden`, the same for wrong, expired, replaced and used
 * tokens; `invalid_request` for a bad password, and `rate_limited`.
 */
export async function completeSetup(
  { db, world, meter }: SignInContext,
  signIn: SignIn,
  { token, name, password }: SetupInput,
  visitor: Visitor,
): Promise<SignedIn> {
  // Once setup is over, an attempt can succeed no more: it is neither recorded nor counted, because anyone can make
  // thousands.
  if (await hasAdministrators(db.reader)) {
    meter.authenticationFailed('setup_link');
    throw notValid();
  }
  const attempt = signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
  if (!(await isValidToken(db.reader, requireIntegrity(db), token, world.now()))) {
    meter.authenticationFailed('setup_link');
    await signIn.recordRefusal(visitor.actor, 'setup', 'setup link not valid');
    throw notValid();
  }
  attempt.withdrawn();
  const hash = await signIn.passwords.choose(name, password);
  const createToken = await sessionTokenCreator();
  return db.write(async (writer) => {
    // Another request may have used the same link meanwhile.
    if (!(await isValidToken(writer, requireIntegrity(writer), token, world.now()))) throw notValid();
    const person = { ...visitor.actor, name: `admin:${name}` };
    const row = await addAdministrator(
      writer,
      person,
      { name, role: 'admin', password_hash: hash },
      world.now(),
    );
    await setLastSignedIn(writer, row.id, world.now());
    return signIn.sessions.begin(writer, row, visitor, createToken);
  });
}

async function isValidToken(
  reader: Reader,
  integrity: Integrity,
  token: Secret<string>,
  now: number,
): Promise<boolean> {
  const kept = await readSetting(reader, 'setup-token-hash');
  const expiresAt = await readSetting(reader, 'setup-token-expires-at');
  const tag = await readSetting(reader, 'setup-token-tag');
  return (
    Buffer.isBuffer(kept) &&
    Buffer.isBuffer(tag) &&
    typeof expiresAt === 'number' &&
    now < expiresAt &&
    integrity.fits('setup link', tagText(kept, expiresAt), tag) &&
    setupTokenMatches(token, kept) &&
    !(await hasAdministrators(reader))
  );
}

function tagText(idHash: Buffer, expiresAt: number): string {
  return asciiNetstring(idHash.toString('hex')) + asciiNetstring(String(expiresAt));
}

function notValid(): Problem {
  return new Problem('forbidden', {
    detail: 'This setup link is invalid: it was used, has expired or was replaced by a newer one.',
    hint: 'Create a new one on the host of the vault: vault admin setup-link',
  });
}
