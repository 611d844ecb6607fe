/**
 * Checkpoints: the signed state of the audit log at one moment. Keep them where an attacker who can change the database
 * cannot. The signing key belongs to the vault and outlives the master key, which only seals it.
 */
import { requireIntegrity } from '../../base/integrity.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp, parseTimestamp } from '../../base/timestamp.ts';
import { isSignedByEd25519, publicKeyId, signEd25519 } from '../../crypto/ed25519.ts';
import { generatePrivateKey, publicKeyOf } from '../../crypto/key-pair.ts';
import { type ChainEnd, hashIn, tagState } from '../../db/audit/audit-chain.ts';
import { countAuditEvents, lastAuditEvent } from '../../db/audit/audit-events.ts';
import { type AuditKeyRow, listAuditKeys, replaceAuditKey } from '../../db/audit/audit-keys.ts';
import type { Writer } from '../../db/database.ts';
import type { DatabaseContext, SealingContext, SecretsContext } from '../contexts.ts';
import { auditKeyOwner, openFor, sealFor } from '../sealed-secrets.ts';
import { type Actor, record } from './audit.ts';

/** Contents of a checkpoint: id and link of the newest event, and the number of events. */
export type Checkpoint = ChainEnd & { readonly at: number; readonly events: number };

const firstLine = 'vault audit checkpoint 1';

const form = new RegExp(
  `^(${firstLine}\nevent ([1-9]\\d{0,15})\nhash ([0-9a-f]{64})\nevents (\\d{1,16})\nat (\\S+)\nkey ([0-9a-f]{16})\n)` +
    'signature ([A-Za-z0-9+/]{86}==)\\s*$',
);

/**
 * Returns a checkpoint of the log as text: six lines, and a signature over exactly these. Throws OperatorError if the
 * newest event was not written by this vault.
 */
export async function makeCheckpoint(vault: SecretsContext, actor: Actor): Promise<string> {
  const { sealed, publicKey } = await signingKey(vault, actor);
  const last = await lastAuditEvent(vault.db.reader);
  if (last === undefined || tagState(requireIntegrity(vault.db), last.link) !== 'tagged') {
    throw nothingToSign();
  }
  const events = await countAuditEvents(vault.db.reader);
  const text = [
    firstLine,
    `event ${last.id}`,
    `hash ${hashIn(last.link).toString('hex')}`,
    `events ${events}`,
    `at ${formatTimestamp(vault.world.now())}`,
    `key ${publicKeyId(publicKey)}`,
    '',
  ].join('\n');
  const privateKey = openFor(vault, auditKeyOwner(publicKey), sealed);
  return `${text}signature ${signEd25519(privateKey, Buffer.from(text)).toString('base64')}\n`;
}

/**
 * Parses a checkpoint and verifies that one of this vault's keys signed it. Throws OperatorError; its message calls the
 * checkpoint `name`.
 */
export async function readCheckpoint(
  { db }: DatabaseContext,
  text: string,
  name: string,
): Promise<Checkpoint> {
  const keys = (await listAuditKeys(db.reader)).map(({ public_key }) => public_key);
  return checkpointSignedBy(keys, text, name);
}

/** Like `readCheckpoint`, with these keys (SPKI DER) and without a vault. */
export function checkpointSignedBy(keys: readonly Buffer[], text: string, name: string): Checkpoint {
  const [, signed = '', id, hash = '', events, moment = '', keyId, signature = ''] =
    form.exec(text.replaceAll('\r\n', '\n')) ?? [];
  const at = parseTimestamp(moment);
  if (at === undefined) {
    throw new OperatorError(`${name} is not an audit checkpoint`, {
      hint: 'Use a file written by "vault audit checkpoint".',
    });
  }
  const key = keys.find((one) => publicKeyId(one) === keyId);
  if (key === undefined) {
    throw new OperatorError(`${name} is signed with an unknown key (${keyId})`, {
      hint: 'The checkpoint comes from another vault, or from this vault before it was restored from an older backup.',
    });
  }
  if (!isSignedByEd25519(key, Buffer.from(signed), Buffer.from(signature, 'base64'))) {
    throw new OperatorError(`the signature of ${name} is invalid: the checkpoint was modified`, {
      hint: 'Use another copy of the checkpoint.',
    });
  }
  return { id: Number(id), link: Buffer.from(hash, 'hex'), events: Number(events), at };
}

/** The public signing key (SPKI DER), generated now if missing. */
export async function checkpointKey(vault: SecretsContext, actor: Actor): Promise<Buffer> {
  return (await signingKey(vault, actor)).publicKey;
}

/** Replaces the signing key. Signatures of earlier keys stay valid, but these keys can no longer sign. */
export async function replaceCheckpointKey(vault: SecretsContext, actor: Actor): Promise<void> {
  const privateKey = await generatePrivateKey('ed25519');
  await vault.db.write((writer) => keepKey(vault, writer, privateKey, actor));
}

type SigningKey = { readonly publicKey: Buffer; readonly sealed: Buffer };

async function signingKey(vault: SecretsContext, actor: Actor): Promise<SigningKey> {
  const known = signing(await listAuditKeys(vault.db.reader));
  if (known !== undefined) return known;
  const privateKey = await generatePrivateKey('ed25519');
  // Of two concurrent calls, one stores its key.
  return vault.db.write(
    async (writer) =>
      signing(await listAuditKeys(writer)) ?? (await keepKey(vault, writer, privateKey, actor)),
  );
}

function signing([newest]: readonly AuditKeyRow[]): SigningKey | undefined {
  if (newest === undefined || newest.sealed_private_key === null) return undefined;
  return { publicKey: newest.public_key, sealed: newest.sealed_private_key };
}

async function keepKey(
  vault: SealingContext,
  writer: Writer,
  privateKey: Secret,
  actor: Actor,
): Promise<SigningKey> {
  const publicKey = publicKeyOf(privateKey);
  const sealed = await sealFor(vault, writer, auditKeyOwner(publicKey), privateKey);
  const now = vault.world.now();
  await replaceAuditKey(writer, { public_key: publicKey, sealed_private_key: sealed, created_at: now });
  const detail = { public_key: publicKey.toString('base64') };
  const resource = `audit-key:${publicKeyId(publicKey)}`;
  record(writer, { actor, action: 'audit.key', resource, detail }, now);
  return { publicKey, sealed };
}

function nothingToSign(): OperatorError {
  return new OperatorError('the newest event of the audit log was not written by this vault', {
    hint: 'An older version of "vault serve" may still be running. Restart it, then run "vault audit verify".',
  });
}
