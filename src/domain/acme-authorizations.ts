/**
 * Proving control of an order's names (RFC 8555 §7.5): what is put up is stored first, so that any process can answer
 * for it, and whoever finds it after a crash can take it down.
 */
import type { AcmeClient } from '../acme/acme-client.ts';
import type { AcmeAuthorization, AcmeChallenge, AcmeOrder } from '../acme/acme-types.ts';
import { keyAuthorization } from '../acme/challenge-answers.ts';
import { answerChallenge, fetchAuthorization, waitForAuthorization } from '../acme/orders.ts';
import { OperatorError } from '../base/operator-error.ts';
import { type AcmeChallengeRow, insertChallenge, listRenewalChallenges } from '../db/acme-challenges.ts';
import { findDnsProviderById } from '../db/dns-providers.ts';
import { findRenewal } from '../db/renewals.ts';
import type { OwnAccount } from './acme-account.ts';
import { type ChosenProof, chooseProof } from './acme-proofs.ts';
import { type Attempt, LeaseLost, step } from './attempt.ts';
import { recordOf, removeChallenges } from './challenge-removal.ts';
import { checkPersistentRecord } from './dns-persist.ts';
import { awaitVisible, isByHand, putUp } from './dns-records.ts';
import type { Vault } from './vault.ts';

export type OrderUnderWay = {
  readonly client: AcmeClient;
  readonly account: OwnAccount;
  readonly order: AcmeOrder;
};

type Proof = ChosenProof & {
  readonly authorization: AcmeAuthorization;
  readonly row: AcmeChallengeRow | undefined;
};

/**
 * Brings every authorization of the order that is still pending to valid. Throws AcmeError with the CA's words,
 * DnsProviderError or OperatorError; whatever was put up is taken down again, unless the vault stops: then the next
 * worker goes on with it.
 */
export async function satisfyAuthorizations(
  vault: Vault,
  attempt: Attempt,
  { client, account, order }: OrderUnderWay,
): Promise<void> {
  const { signal } = attempt;
  const all = await inTurn(order.authorizations, (url) => fetchAuthorization(client, account, url, signal));
  const pending = all.filter(({ status }) => status !== 'valid');
  const proofs: Proof[] = [];
  try {
    for (const authorization of pending) {
      const chosen = await chooseProof(vault, attempt, authorization);
      const row = await store(vault, attempt, account, authorization, chosen);
      proofs.push({ ...chosen, authorization, row });
    }
    for (const proof of proofs) await show(vault, attempt, proof);
    await settled(proofs.map((proof) => beVisible(vault, attempt, proof)));
    await settled(proofs.map((proof) => prove(vault, attempt, { client, account, order }, proof)));
  } finally {
    if (!signal.aborted || signal.reason === 'deadline' || signal.reason === 'superseded') {
      // What was stored here, also where the renewal is gone with its certificate, and what an earlier worker left.
      const own = proofs.flatMap(({ row }) => row ?? []);
      const left = await listRenewalChallenges(vault.db.reader, attempt.renewal.id);
      await removeChallenges(vault, [...own, ...left.filter(({ id }) => own.every((row) => row.id !== id))]);
    }
  }
}

/** The row of what will be put up; the same one where an earlier worker stored it. dns-persist-01 puts nothing up. */
async function store(
  vault: Vault,
  { renewal, owner }: Attempt,
  account: OwnAccount,
  { identifier }: AcmeAuthorization,
  { challenge, place, recordValue }: ChosenProof,
): Promise<AcmeChallengeRow | undefined> {
  if (challenge.token === undefined || challenge.type === 'dns-persist-01') return undefined;
  const { token } = challenge;
  const answer = await keyAuthorization(token, account.privateKey);
  const known = await listRenewalChallenges(vault.db.reader, renewal.id);
  const stored = known.find((row) => row.token === token && row.type === challenge.type);
  if (stored?.key_authorization === answer) return stored;
  // The account has got another key since.
  if (stored !== undefined) await removeChallenges(vault, [stored]);
  return vault.db.write(async (writer) => {
    const leased = await findRenewal(writer, renewal.id);
    if (leased?.lease_owner !== owner) throw new LeaseLost();
    if (place !== undefined && (await findDnsProviderById(writer, place.provider.id)) === undefined) {
      throw new OperatorError(`the DNS provider ${place.provider.name} was removed`);
    }
    return insertChallenge(writer, {
      renewal_id: renewal.id,
      identifier: identifier.value,
      type: challenge.type,
      token,
      key_authorization: answer,
      dns_provider_id: place?.provider.id ?? null,
      record_name: place?.name ?? null,
      record_zone: place?.zone ?? null,
      record_value: recordValue(answer),
      created_at: vault.world.now(),
    });
  });
}

async function show(vault: Vault, attempt: Attempt, { challenge, place, row }: Proof): Promise<void> {
  const record = row && recordOf(row);
  if (challenge.type !== 'dns-01' || place === undefined || record === undefined) return;
  const text = (await isByHand(vault, place.provider))
    ? `waiting for you to create the record ${record.name} TXT "${record.value}"`
    : `putting up ${record.name} through ${place.provider.name}`;
  await step(vault, attempt, text);
  await putUp(vault, place.provider, record, attempt.signal);
}

async function beVisible(
  vault: Vault,
  attempt: Attempt,
  { authorization, challenge, place, row }: Proof,
): Promise<void> {
  if (challenge.type === 'dns-persist-01') {
    await checkPersistentRecord(vault, authorization, challenge, attempt.signal);
    return;
  }
  const record = row && recordOf(row);
  if (place === undefined || record === undefined) return;
  const provider = await findDnsProviderById(vault.db.reader, place.provider.id);
  if (provider === undefined) return;
  if (!(await isByHand(vault, provider)))
    await step(vault, attempt, `waiting until ${record.name} can be seen`);
  await awaitVisible(vault, provider, record, attempt.signal);
}

async function prove(
  vault: Vault,
  attempt: Attempt,
  { client, account }: OrderUnderWay,
  { authorization, challenge }: Proof,
): Promise<void> {
  await step(vault, attempt, `proving control of ${authorization.identifier.value} by ${challenge.type}`);
  if (isUnanswered(challenge)) await answerChallenge(client, account, challenge, attempt.signal);
  await waitForAuthorization(client, account, authorization.url, attempt.signal);
}

function isUnanswered({ status }: AcmeChallenge): boolean {
  return status === 'pending';
}

/** Waits for all of them, and then throws what the first of those that failed threw. */
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
