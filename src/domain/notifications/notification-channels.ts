/** Notification channels as people add, change, try and remove them. */

import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import type { ChannelType } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import { signingSecret } from '../../channels/webhook-signature.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type ChannelChanges,
  type ChannelRow,
  deleteChannelRow,
  findChannel,
  insertChannel,
  listChannels,
  updateChannel,
} from '../../db/tables/notification-channels.ts';
import { findDelivery, updateDelivery } from '../../db/tables/notification-deliveries.ts';
import { type Actor, record } from '../audit/audit.ts';
import { didYouMean } from '../closest-names.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../contexts.ts';
import { channelSettingsOwner, sealFor } from '../sealed-secrets.ts';
import { type ReadSettings, readChannelSettings } from './channel-settings.ts';
import { lease } from './notification-claim.ts';
import { type DeliveryContext, deliver } from './notification-delivery.ts';
import { nextDigestAt } from './notification-digest.ts';
import type { CreateChannelInput, UpdateChannelInput } from './notification-inputs.ts';
import { notifyChannel } from './notification-queue.ts';

/** What came of settings: a key for signatures that the vault has made is shown this once. */
export type MadeSecret = Secret<string> | undefined;

/** The channel of this name. Throws `not_found` that offers those that exist. */
export async function requireChannel(reader: Reader, name: string): Promise<ChannelRow> {
  const row = await findChannel(reader, name);
  if (row !== undefined) return row;
  const known = (await listChannels(reader)).map((channel) => channel.name);
  throw new Problem('not_found', {
    detail: `There is no notification channel called "${name}".`,
    hint: didYouMean(name, known, 'List those that exist with "vault notification list".'),
  });
}

/**
 * Adds a channel; `settings` is YAML or JSON as its type needs it, checked and sealed. A webhook without a secret gets one,
 * which is returned. Throws OperatorError; nothing is added then.
 */
export async function addChannel(
  vault: SecretsContext,
  actor: Actor,
  input: CreateChannelInput,
  settings: Secret,
): Promise<MadeSecret> {
  const { config, made } = await checkChannelSettings(vault, input.type, settings);
  await vault.db.write((writer) => storeChannel(vault, writer, actor, input, config));
  return made;
}

async function storeChannel(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, type: kind, events, certificates, digest_at, digest_days }: CreateChannelInput,
  config: unknown,
): Promise<void> {
  if ((await findChannel(writer, name)) !== undefined) {
    throw new OperatorError(`there is a notification channel called ${name} already`, {
      hint: 'Choose another name, or change that one with "vault notification update".',
    });
  }
  const now = vault.world.now();
  const type = requireType(kind);
  const target = type.target(config);
  const id = await insertChannel(writer, {
    ...{ name, type: type.type, target, sealed_settings: Buffer.alloc(0) },
    events: JSON.stringify(events),
    certificates: JSON.stringify(certificates),
    ...{ digest_at, digest_days, created_at: now },
    next_digest_at: digest_at === null ? null : nextDigestAt(digest_at, now),
  });
  await updateChannel(writer, id, { sealed_settings: await sealed(vault, writer, id, config) });
  const detail = { type: type.type, target, events, certificates, digest_at };
  await record(writer, { actor, action: 'notification_channel.create', ...resource(name), detail }, now);
}

/**
 * Changes a channel. Settings are replaced as a whole, credentials with them: who may change where a channel leads must not
 * get at credentials that others gave it. Throws OperatorError and `not_found`.
 */
export async function changeChannel(
  vault: SecretsContext,
  actor: Actor,
  name: string,
  input: UpdateChannelInput,
  settings?: Secret,
): Promise<MadeSecret> {
  const { type } = await requireChannel(vault.db.reader, name);
  const read = settings === undefined ? undefined : await checkChannelSettings(vault, type, settings);
  await vault.db.write((writer) => storeChannelChanges(vault, writer, actor, name, input, read?.config));
  return read?.made;
}

/** Without `config` the settings stay. */
async function storeChannelChanges(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  name: string,
  { disabled, ...input }: UpdateChannelInput,
  config?: unknown,
): Promise<void> {
  const before = await requireChannel(writer, name);
  const now = vault.world.now();
  const target = config === undefined ? undefined : requireType(before.type).target(config);
  const changes: ChannelChanges = {
    ...(input.events !== undefined && { events: JSON.stringify(input.events) }),
    ...(input.certificates !== undefined && { certificates: JSON.stringify(input.certificates) }),
    ...(input.digest_days !== undefined && { digest_days: input.digest_days }),
    ...(input.digest_at !== undefined && {
      digest_at: input.digest_at,
      next_digest_at: input.digest_at === null ? null : nextDigestAt(input.digest_at, now),
    }),
    ...(disabled === true && { disabled_at: before.disabled_at ?? now, disabled_reason: null }),
    ...(disabled === false && { disabled_at: null, disabled_reason: null }),
    ...(target !== undefined && { target, sealed_settings: await sealed(vault, writer, before.id, config) }),
  };
  if (Object.keys(changes).length === 0) return;
  await updateChannel(writer, before.id, changes);
  const detail = {
    ...input,
    ...(disabled !== undefined && { disabled }),
    ...(target !== undefined && { target }),
  };
  await record(writer, { actor, action: 'notification_channel.update', ...resource(name), detail }, now);
}

/** Removes a channel with its settings, what it was yet to be told, and its log. Throws `not_found`. */
export async function removeChannel({ db, world }: TimedContext, actor: Actor, name: string): Promise<void> {
  await db.write(async (writer) => {
    const { id } = await requireChannel(writer, name);
    await deleteChannelRow(writer, id);
    await record(writer, { actor, action: 'notification_channel.delete', ...resource(name) }, world.now());
  });
}

/**
 * Sends a test message now, also over a channel that is disabled, and keeps it in the log. Throws OperatorError that says
 * why it was not taken, and `not_found`.
 */
export async function testChannel(
  vault: DeliveryContext,
  actor: Actor,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const { db, world } = vault;
  const claimed = await db.write(async (writer) => {
    const channel = await requireChannel(writer, name);
    const now = world.now();
    await record(writer, { actor, action: 'notification_channel.test', ...resource(name) }, now);
    const notice = { event: 'test', about: null, certificates: null, data: { channel: name } } as const;
    const delivery = await findDelivery(writer, await notifyChannel(world, writer, channel, notice));
    if (delivery === undefined) throw new Error('it was added in this transaction');
    // Whoever tries it sees how it went; nobody wants the same again an hour later.
    await updateDelivery(writer, delivery.id, { expires_at: now });
    return lease(writer, [{ ...delivery, expires_at: now }], channel, 'test', now);
  });
  const failure = await deliver(vault, claimed, signal);
  if (failure !== undefined) throw new OperatorError(failure.message, { cause: failure });
  if (signal.aborted) throw new OperatorError('the test was given up before there was an answer');
}

/** Settings as a channel of this type needs them; a webhook without a secret gets one. Throws OperatorError. */
async function checkChannelSettings(
  { world }: WorldContext,
  kind: string,
  settings: Secret,
): Promise<ReadSettings> {
  const type = requireType(kind);
  const made = type.type === 'webhook' ? new Secret(signingSecret(world.randomBytes(32))) : undefined;
  return readChannelSettings(type, settings, made);
}

function requireType(type: string): ChannelType {
  const known = channelTypes.get(type);
  if (known !== undefined) return known;
  const types = [...channelTypes.keys()];
  throw new OperatorError(`there is no kind of notification channel called "${type}"`, {
    hint: didYouMean(type, types, `Use one of: ${types.join(', ')}.`),
  });
}

function sealed(vault: SealingContext, writer: Writer, id: number, config: unknown): Promise<Buffer> {
  const settings = new Secret(Buffer.from(JSON.stringify(config)));
  return sealFor(vault, writer, channelSettingsOwner(id), settings);
}

function resource(name: string): { readonly resource: string } {
  return { resource: `notification-channel:${name}` };
}
