/**
 * Validating an order's names (RFC 8555 §7.5): challenges are stored before they are presented, so that any
 * process can answer them and remove them after a crash.
 */
import type { AcmeClient } from '../../acme/acme-client.ts';
import type { AcmeAuthorization, AcmeChallenge, AcmeOrder } from '../../acme/acme-types.ts';
import { keyAuthorization } from '../../acme/challenge-answers.ts';
import { answerChallenge, fetchAuthorization, waitForAuthorization } from '../../acme/orders.ts';
import { mapBounded } from '../../base/bounded.ts';
import { withPausedDeadline } from '../../base/deadline.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AcmeChallengeRow,
  insertChallenge,
  listRenewalChallenges,
} from '../../db/tables/issuance/acme-challenges.ts';
import { type DnsProviderRow, findDnsProviderById } from '../../db/tables/issuance/dns-providers.ts';
import type { TxtRecord } from '../../dns/dns-provider.ts';
import type { OwnAccount } from '../acme-accounts/acme-account.ts';
import type { WorldContext } from '../contexts.ts';
import { checkPersistentRecord } from '../dns-providers/dns-persist.ts';
import { awaitVisible, isByHand, presentRecords, zoneServers } from '../dns-providers/dns-records.ts';
import type { ChallengeContext, ProofContext } from '../issuance-contexts.ts';
import { type ChosenProof, chooseProof } from './acme-proofs.ts';
import { beginRemoval, recordOf, removeChallenges } from './challenge-removal.ts';
import { LeaseLost, type OrderProgress } from './order-progress.ts';

export type OrderUnderWay = {
  readonly client: AcmeClient;
  readonly account: OwnAccount;
  readonly order: AcmeOrder;
};

type Proof = ChosenProof & {
  readonly authorization: AcmeAuthorization;
  readonly row: AcmeChallengeRow | undefined;
};

/** Concurrent CNAME lookups and validations. */
const atOnce = 10;

/**
 * Validates every pending authorization of the order: presents all records, waits until all are visible, then requests
 * the validations. The attempt's deadline is suspended until the records are visible, because DNS operations and
 * propagation have their own limits. Throws AcmeError with the error of the CA, DnsProviderError or OperatorError.
 * Presented records are removed in the background, unless the vault stops or another worker claimed the renewal and
 * continues with them.
 */
export async function satisfyAuthorizations(
  vault: ChallengeContext & ProofContext,
  attempt: OrderProgress,
  { client, account, order }: OrderUnderWay,
): Promise<void> {
  const { signal } = attempt;
  const all = await inTurn(order.authorizations, (url) => fetchAuthorization(client, account, url, signal));
  const pending = all.filter(({ status }) => status !== 'valid');
  let proofs: readonly Proof[] = [];
  let isLost = false;
  try {
    const servers = zoneServers(vault);
    const chosen = await mapBounded(atOnce, pending, async (authorization) => ({
      ...(await chooseProof(vault, attempt, authorization, servers)),
      authorization,
    }));
    proofs = await store(vault, attempt, account, chosen);
    await withPausedDeadline(vault.world, attempt.extend, async () => {
      await present(vault, attempt, proofs);
      await waitVisible(vault, attempt, proofs);
    });
    await mapBounded(atOnce, proofs, (proof) => validate(attempt, { client, account, order }, proof));
  } catch (error) {
    isLost = error instanceof LeaseLost;
    throw error;
  } finally {
    const isOurs = !signal.aborted || signal.reason === 'deadline' || signal.reason === 'superseded';
    // A renewal that was deleted with its certificate looks like a lost lease, but no other worker has it.
    const isLeft = isLost || signal.reason === 'lease lost';
    if (isLeft ? (await attempt.read()) === undefined : isOurs) {
      // Both the challenges stored here, even if the renewal was deleted, and those of an earlier worker.
      const own = proofs.flatMap(({ row }) => row ?? []);
      const left = await listRenewalChallenges(vault.db.reader, attempt.renewal.id);
      beginRemoval(vault, [...own, ...left.filter(({ id }) => own.every((row) => row.id !== id))]);
    }
  }
}

type Chosen = ChosenProof & { readonly authorization: AcmeAuthorization };

/**
 * Stores the challenges before they are presented, in one transaction; reuses the rows of an earlier worker. There is
 * no row for dns-persist-01, which presents nothing.
 */
async function store(
  vault: ChallengeContext,
  attempt: OrderProgress,
  account: OwnAccount,
  chosen: readonly Chosen[],
): Promise<readonly Proof[]> {
  const { id } = attempt.renewal;
  const known = await listRenewalChallenges(vault.db.reader, id);
  const answered = await mapBounded(atOnce, chosen, async (proof) => {
    const { token, type } = proof.challenge;
    if (token === undefined || type === 'dns-persist-01') return { proof };
    const answer = await keyAuthorization(token, account.privateKey);
    // biome-ignore lint/plugin/compared-secrets: a challenge's token is part of a public URL.
    return { proof, token, answer, row: known.find((row) => row.token === token && row.type === type) };
  });
  // The key of the account changed since these were stored.
  const outdated = answered.flatMap(({ row, answer }) =>
    row !== undefined && row.key_authorization !== answer ? row : [],
  );
  await removeChallenges(vault, outdated);
  return attempt.write(async (writer) => {
    const stored: Proof[] = [];
    for (const { proof, token, answer, row } of answered) {
      if (token === undefined) stored.push({ ...proof, row: undefined });
      else if (row?.key_authorization === answer) stored.push({ ...proof, row });
      else stored.push({ ...proof, row: await insert(vault, writer, id, proof, token, answer) });
    }
    return stored;
  });
}

async function insert(
  { world }: WorldContext,
  writer: Writer,
  renewalId: number,
  { authorization, challenge, place, recordValue }: Chosen,
  token: string,
  answer: string,
): Promise<AcmeChallengeRow> {
  if (place !== undefined && (await findDnsProviderById(writer, place.provider.id)) === undefined) {
    throw new OperatorError(`DNS provider ${place.provider.name} was removed`);
  }
  return insertChallenge(writer, {
    renewal_id: renewalId,
    identifier: authorization.identifier.value,
    type: challenge.type,
    token,
    key_authorization: answer,
    dns_provider_id: place?.provider.id ?? null,
    record_name: place?.name ?? null,
    record_zone: place?.zone ?? null,
    record_value: recordValue(answer),
    created_at: world.now(),
  });
}

type ProviderRecords = { readonly provider: DnsProviderRow; readonly records: readonly TxtRecord[] };

/** The records to present, by provider. */
function recordsOf(proofs: readonly Proof[]): readonly ProviderRecords[] {
  const all = proofs.flatMap(({ place, row }) => {
    const record = row && recordOf(row);
    return place === undefined || record === undefined ? [] : { provider: place.provider, record };
  });
  return [...Map.groupBy(all, ({ provider }) => provider.id).values()].flatMap((some) =>
    some[0] === undefined ? [] : { provider: some[0].provider, records: some.map(({ record }) => record) },
  );
}

async function present(
  vault: ChallengeContext,
  attempt: OrderProgress,
  proofs: readonly Proof[],
): Promise<void> {
  await settled(
    recordsOf(proofs).map(async ({ provider, records }) => {
      if (await isByHand(vault, provider)) {
        for (const { name, value } of records) {
          await attempt.step(`waiting for you to create the record ${name} TXT "${value}"`);
        }
      } else {
        await attempt.step(`presenting ${namesOf(records)} through ${provider.name}`);
      }
      await presentRecords(vault, provider, records, attempt.signal);
    }),
  );
}

/** Waits until all records are visible, including those created by hand. */
async function waitVisible(
  vault: ChallengeContext,
  attempt: OrderProgress,
  proofs: readonly Proof[],
): Promise<void> {
  const persistent = proofs.filter(({ challenge }) => challenge.type === 'dns-persist-01');
  await settled([
    ...persistent.map(({ authorization, challenge }) =>
      checkPersistentRecord(vault, authorization, challenge, attempt.signal),
    ),
    ...recordsOf(proofs).map(async ({ provider: { id }, records }) => {
      const provider = await findDnsProviderById(vault.db.reader, id);
      if (provider === undefined) return;
      if (!(await isByHand(vault, provider))) {
        await attempt.step(`waiting for ${namesOf(records)} to become visible`);
      }
      await awaitVisible(vault, provider, records, attempt.signal);
    }),
  ]);
}

/** The name of the record, or how many there are. */
function namesOf(records: readonly TxtRecord[]): string {
  const names = new Set(records.map(({ name }) => name));
  const [first] = names;
  return names.size === 1 && first !== undefined ? first : `${records.length} challenge records`;
}

async function validate(
  attempt: OrderProgress,
  { client, account }: OrderUnderWay,
  { authorization, challenge }: Proof,
): Promise<void> {
  await attempt.step(`validating ${authorization.identifier.value} with ${challenge.type}`);
  if (isUnanswered(challenge)) await answerChallenge(client, account, challenge, attempt.signal);
  await waitForAuthorization(client, account, authorization.url, attempt.signal);
}

function isUnanswered({ status }: AcmeChallenge): boolean {
  return status === 'pending';
}

/** Waits for all promises, then throws the error of the first one that failed. */
async function settled(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

async function inTurn<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const value of values) results.push(await work(value));
  return results;
}
