/** What tests of notifications begin with: channels, what waits for them, and a notifier that runs for as long as it takes. */
import assert from 'node:assert/strict';
import { Secret } from '../../src/base/secret.ts';
import { listDeliveries, type NamedDeliveryRow } from '../../src/db/tables/notification-deliveries.ts';
import { localCli, system } from '../../src/domain/audit/audit.ts';
import { parseInput } from '../../src/domain/inputs.ts';
import type { Attempt } from '../../src/domain/issuance/attempt.ts';
import { addChannel } from '../../src/domain/notifications/notification-channels.ts';
import { claimDelivery } from '../../src/domain/notifications/notification-claim.ts';
import { deliver } from '../../src/domain/notifications/notification-delivery.ts';
import { createChannelInput } from '../../src/domain/notifications/notification-inputs.ts';
import { claimRenewal } from '../../src/domain/renewals/renewal-claim.ts';
import { fail } from '../../src/domain/renewals/renewal-outcome.ts';
import { requestRenewal } from '../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { requireCertificate } from '../../src/domain/versions/certificate-lookup.ts';
import { forever } from './renewal-fixtures.ts';

/** Settings as they are written into a secret file. */
export const written = (settings: object): Secret => new Secret(Buffer.from(JSON.stringify(settings)));

/** A webhook that leads to this URL; its signing secret. */
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

/** Everything that was queued, oldest first. */
export async function deliveriesOf({ db }: Vault): Promise<NamedDeliveryRow[]> {
  return (await listDeliveries(db.reader, { limit: 10_000 })).reverse();
}

/** `renewal.failed web` for everything that was queued, oldest first. */
export async function toldIn(vault: Vault): Promise<string[]> {
  return (await deliveriesOf(vault)).map(({ event, about }) =>
    about === null ? event : `${event} ${about}`,
  );
}

/** Attempts what is due, one after the other, until nothing is. Returns how many attempts there were. */
export async function deliverAll(vault: Vault): Promise<number> {
  for (let attempts = 0; ; attempts += 1) {
    const claimed = await claimDelivery(vault, 'test', []);
    if (claimed === undefined) return attempts;
    await deliver(vault, claimed, forever);
  }
}

/** A renewal of the certificate that somebody has begun. */
export async function begunRenewal(vault: Vault, name: string): Promise<Attempt> {
  await requestRenewal(vault, system, name);
  const claimed = await claimRenewal(vault, 'test');
  assert(claimed);
  const certificate = await requireCertificate(vault.db.reader, name);
  return { ...claimed, certificate, signal: forever, steps: [] };
}

export const failure = (reason: string) => ({ reason, retryAfterMs: undefined, pausesIssuer: false });

/** A renewal of the certificate that ends as failed, the way the worker ends it. */
export async function failRenewal(vault: Vault, name: string, reason: string): Promise<void> {
  const attempt = await begunRenewal(vault, name);
  await vault.db.write((writer) => fail(vault, writer, attempt, failure(reason)));
}
