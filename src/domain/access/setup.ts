/** The first administrator: a one-time link that a vault without any shows at its start, and what comes of it. */
import { z } from 'zod';
import { day } from '../../base/duration.ts';
import type { Integrity } from '../../base/integrity.ts';
import { asciiNetstring } from '../../base/netstring.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { createSetupToken, sessionTokenCreator, setupTokenMatches } from '../../crypto/session-token.ts';
import { type Reader, requireIntegrity } from '../../db/database.ts';
import { hasAdministrators, setLastSignedIn } from '../../db/tables/administrators.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { addAdministrator, createAdministratorInput } from './administrators.ts';
import type { SignedIn, Visitor } from './sessions.ts';
import type { SignIn, SignInContext } from './sign-in.ts';

/** How long a setup link is good for, in milliseconds. */
export const setupPatience = day;

export const setupInput = createAdministratorInput.extend({
  token: z
    .string()
    .max(256)
    .transform((text) => new Secret(text)),
});

export type SetupInput = z.output<typeof setupInput>;

/** Whether there is no administrator, so that a setup link can make the first. */
export async function needsSetup({ db }: DatabaseContext): Promise<boolean> {
  return !(await hasAdministrators(db.reader));
}

/** A new setup token where there is no administrator, in place of any earlier one; undefined where there is one. */
export async function offerSetup(
  { db, world }: TimedContext,
  actor: Actor,
): Promise<Secret<string> | undefined> {
  if (await hasAdministrators(db.reader)) return undefined;
  const { token, idHash } = createSetupToken(world);
  await db.write(async (writer) => {
    const expiresAt = world.now() + setupPatience;
    await record(writer, { actor, action: 'setup_link.create', resource: 'setup' }, world.now());
    await putSetting(writer, 'setup-token-hash', idHash);
    await putSetting(writer, 'setup-token-expires-at', expiresAt);
    const tag = requireIntegrity(writer).tag('setup link', tagText(idHash, expiresAt));
    await putSetting(writer, 'setup-token-tag', tag);
  });
  return token;
}

/**
 * Makes the first administrator and signs them in. Throws `forbidden`, one answer for wrong, expired, replaced and used
 * tokens; `invalid_request` where the password is refused, and `rate_limited`.
 */
export async function completeSetup(
  { db, world, audit, meter }: SignInContext,
  signIn: SignIn,
  { token, name, password }: SetupInput,
  visitor: Visitor,
): Promise<SignedIn> {
  const attempt = await signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
  if (!(await isOpenTo(db.reader, requireIntegrity(db), token, world.now()))) {
    meter.authenticationFailed('setup_link');
    const reason = 'setup link not valid';
    await audit.append({
      actor: visitor.actor,
      action: 'session.refuse',
      resource: 'setup',
      detail: { reason },
    });
    throw notValid();
  }
  attempt.withdrawn();
  const hash = await signIn.passwords.choose(name, password);
  const createToken = await sessionTokenCreator();
  return db.write(async (writer) => {
    // Two may have come with the same link.
    if (!(await isOpenTo(writer, requireIntegrity(writer), token, world.now()))) throw notValid();
    const person = { ...visitor.actor, name: `admin:${name}` };
    const row = await addAdministrator(writer, person, name, hash, world.now());
    await setLastSignedIn(writer, row.id, world.now());
    return signIn.sessions.begin(writer, row, visitor, createToken);
  });
}

async function isOpenTo(
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
    detail: 'This setup link is not valid: it was used, has expired or was replaced by a newer one.',
    hint: "Create a new one on the vault's host: vault admin setup-link",
  });
}
