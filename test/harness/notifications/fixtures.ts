/**
 * Fixtures for tests of notifications: channels, queued deliveries, and a notifier that runs until the queue is empty.
 */
import assert from 'node:assert/strict';
import { Secret } from '../../../src/base/secret.ts';
import {
  listDeliveries,
  type NamedDeliveryRow,
} from '../../../src/db/tables/notifications/notification-deliveries.ts';
import { localCli, system } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { addChannel } from '../../../src/domain/notifications/notification-channels.ts';
import { claimDelivery } from '../../../src/domain/notifications/notification-claim.ts';
import { deliver } from '../../../src/domain/notifications/notification-delivery.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import type { Attempt } from '../../../src/domain/renewals/attempt.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { fail } from '../../../src/domain/renewals/renewal-outcome.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { forever } from '../issuance/renewal-fixtures.ts';

/** Settings in the format of a secret file. */
export const written = (settings: object): Secret => new Secret(Buffer.from(JSON.stringify(settings)));

/** Adds a webhook channel for this URL. Returns its signing secret. */
export async function addWebhook(
  vault: Vault,
  url: string,
  others: { readonly name?: string; readonly settings?: object } & Record<string, unknown> = {},
): Promise<string> {
  const { settings, ...input } = { name: 'ops', ...others };
  const parsed = parseInput(createChannelInput, { type: 'webhook', ...input });
  const made = await addChannel(vault, localCli, parsed, written({ url, ...settings }));
  return made?.expose() ?? '';
}

/** All deliveries, oldest first. */
export async function deliveriesOf({ db }: Vault): Promise<NamedDeliveryRow[]> {
  return (await listDeliveries(db.reader, { limit: 10_000 })).reverse();
}

/** Event and subject of all deliveries, such as `renewal.failed web`, oldest first. */
export async function toldIn(vault: Vault): Promise<string[]> {
  return (await deliveriesOf(vault)).map(({ event, about }) =>
    about === null ? event : `${event} ${about}`,
  );
}

/** Attempts due deliveries one after the other until none is left. Returns the number of attempts. */
export async function deliverAll(vault: Vault): Promise<number> {
  for (let attempts = 0; ; attempts += 1) {
    const claimed = await claimDelivery(vault, 'test', []);
    if (claimed === undefined) return attempts;
    await deliver(vault, claimed, forever);
  }
}

/** A running renewal of the certificate. */
export async function begunRenewal(
  vault: Vault,
  name: string,
): Promise<Pick<Attempt, 'renewal' | 'owner' | 'certificate'>> {
  await requestRenewal(vault, system, name);
  const claimed = await claimRenewal(vault, 'test');
  assert(claimed);
  const certificate = await requireCertificate(vault.db.reader, name);
  return { ...claimed, certificate };
}

export const failure = (reason: string) => ({ reason, retryAfterMs: undefined, pausesIssuer: false });

/** Fails a renewal of the certificate, in the same way as the worker. */
export async function failRenewal(vault: Vault, name: string, reason: string): Promise<void> {
  const attempt = await begunRenewal(vault, name);
  await vault.db.write((writer) => fail(vault, writer, attempt, failure(reason)));
}
