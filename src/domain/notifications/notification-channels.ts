/** Adding, changing, testing and removing notification channels. */

import { toJson } from '../../base/json.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import type { ChannelType } from '../../channels/channel.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import {
  type ChannelChanges,
  type ChannelRow,
  deleteChannelRow,
  findChannel,
  insertChannel,
  listChannels,
  updateChannel,
} from '../../db/tables/notifications/notification-channels.ts';
import { findDelivery, updateDelivery } from '../../db/tables/notifications/notification-deliveries.ts';
import { signingSecret } from '../../net/webhook-signature.ts';
import { type Actor, record } from '../audit/audit.ts';
import { didYouMean } from '../closest-names.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../contexts.ts';
import { alikeName } from '../new-names.ts';
import { channelSettingsOwner, sealFor } from '../sealed-secrets.ts';
import { type ReadSettings, readChannelSettings } from './channel-settings.ts';
import { lease } from './notification-claim.ts';
import { type DeliveryContext, deliver } from './notification-delivery.ts';
import { nextDigestAt } from './notification-digest.ts';
import type { CreateChannelInput, UpdateChannelInput } from './notification-inputs.ts';
import { notifyChannel } from './notification-queue.ts';

/** The signing secret if the vault generated one; the caller shows it once. */
export type GeneratedSecret = Secret<string> | undefined;

/** The channel of this name. Throws `not_found` that suggests similar names. */
export async function requireChannel(reader: Reader, name: string): Promise<ChannelRow> {
  const row = await findChannel(reader, name);
  if (row !== undefined) return row;
  throw unknownChannel(
    name,
    (await listChannels(reader)).map((channel) => channel.name),
  );
}

/** There is no channel of this name; suggests similar ones of those that are `known`. */
export function unknownChannel(name: string, known: readonly string[]): Problem {
  return new Problem('not_found', {
    detail: `Unknown notification channel "${name}".`,
    hint: didYouMean(name, known, 'Try: vault notification list'),
  });
}

/**
 * Adds a channel; `settings` is YAML or JSON for its type, which is checked and sealed. Returns the signing secret that
 * the vault generated for a webhook without one. Throws OperatorError before anything is stored.
 */
export async function addChannel(
  vault: SecretsContext,
  actor: Actor,
  input: CreateChannelInput,
  settings: Secret,
): Promise<GeneratedSecret> {
  const { config, generated } = await checkChannelSettings(vault, input.type, settings);
  await vault.db.write((writer) => storeChannel(vault, writer, actor, input, config));
  return generated;
}

async function storeChannel(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, type: kind, events, certificates, digest_at, digest_days, ...filters }: CreateChannelInput,
  config: unknown,
): Promise<void> {
  const taken = alikeName(await listChannels(writer), name);
  if (taken !== undefined) {
    throw new OperatorError(`a notification channel named ${taken} already exists`, {
      hint: `Choose another name, or change the existing one.\n  Try: vault notification update --channel ${taken}`,
    });
  }
  const now = vault.world.now();
  const type = requireType(kind);
  const target = type.target(config);
  const id = await insertChannel(writer, {
    ...{ name, type: type.type, target, sealed_settings: Buffer.alloc(0) },
    events: toJson(events),
    certificates: toJson(certificates),
    ...{ digest_at, digest_days, created_at: now },
    certificate_labels: labelsText(filters.certificate_labels),
    labels: labelsText(filters.labels),
    next_digest_at: digest_at === null ? null : nextDigestAt(digest_at, now),
  });
  await updateChannel(writer, id, { sealed_settings: await sealed(vault, writer, id, config) });
  const named = Object.entries(filters).filter(([, labels]) => labels.length > 0);
  const detail = { type: type.type, target, events, certificates, digest_at, ...Object.fromEntries(named) };
  record(writer, { actor, action: 'notification_channel.create', ...resource(name), detail }, now);
}

/**
 * Changes a channel. New settings replace all old ones, credentials included: otherwise an administrator could redirect
 * a channel and receive credentials that another one stored. Throws OperatorError and `not_found`.
 */
export async function changeChannel(
  vault: SecretsContext,
  actor: Actor,
  name: string,
  input: UpdateChannelInput,
  settings?: Secret,
): Promise<GeneratedSecret> {
  const { type } = await requireChannel(vault.db.reader, name);
  const read = settings === undefined ? undefined : await checkChannelSettings(vault, type, settings);
  await vault.db.write((writer) => storeChannelChanges(vault, writer, actor, name, input, read?.config));
  return read?.generated;
}

/** Without `config` the settings stay the same. */
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
    ...(input.events !== undefined && { events: toJson(input.events) }),
    ...(input.certificates !== undefined && { certificates: toJson(input.certificates) }),
    ...(input.digest_days !== undefined && { digest_days: input.digest_days }),
    ...(input.certificate_labels && { certificate_labels: labelsText(input.certificate_labels) }),
    ...(input.labels && { labels: labelsText(input.labels) }),
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
  record(writer, { actor, action: 'notification_channel.update', ...resource(name), detail }, now);
}

/** Removes a channel with its settings, pending deliveries and log. Throws `not_found`. */
export async function removeChannel({ db, world }: TimedContext, actor: Actor, name: string): Promise<void> {
  await db.write(async (writer) => {
    const { id } = await requireChannel(writer, name);
    await deleteChannelRow(writer, id);
    record(writer, { actor, action: 'notification_channel.delete', ...resource(name) }, world.now());
  });
}

/**
 * Sends a test message now, even over a disabled channel, and keeps it in the log. Throws OperatorError with the reason
 * of a failed delivery, and `not_found`.
 */
export async function testChannel(
  vault: DeliveryContext,
  actor: Actor,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const { db, world } = vault;
  const owner = vault.owners.named('test');
  const claimed = await db.write(async (writer) => {
    const channel = await requireChannel(writer, name);
    const now = world.now();
    record(writer, { actor, action: 'notification_channel.test', ...resource(name) }, now);
    const notice = { event: 'test', about: null, certificates: null, data: { channel: name } } as const;
    const delivery = await findDelivery(writer, await notifyChannel(world, writer, channel, notice));
    if (delivery === undefined) throw new Error('the delivery added in this transaction is missing');
    // The caller sees the result, so a failed test is not retried.
    await updateDelivery(writer, delivery.id, { expires_at: now });
    return lease(writer, [{ ...delivery, expires_at: now }], channel, owner, now);
  });
  const failure = await deliver(vault, claimed, signal);
  if (failure !== undefined) throw new OperatorError(failure.message, { cause: failure });
  if (signal.aborted) throw new OperatorError('test canceled before the receiver answered');
}

/** Checked settings for this channel type, with a generated secret for a webhook without one. Throws OperatorError. */
async function checkChannelSettings(
  { world }: WorldContext,
  kind: string,
  settings: Secret,
): Promise<ReadSettings> {
  const type = requireType(kind);
  const fallback = type.type === 'webhook' ? new Secret(signingSecret(world.randomBytes(32))) : undefined;
  return readChannelSettings(type, settings, fallback);
}

function requireType(type: string): ChannelType {
  const known = channelTypes.get(type);
  if (known !== undefined) return known;
  const types = [...channelTypes.keys()];
  throw new OperatorError(`unknown notification channel type "${type}"`, {
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
