/** Consecutive orders in one vault, each with its own issuer, account and names. */
import assert from 'node:assert/strict';
import type { RenewalRow } from '../../../src/db/tables/renewals/renewals.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createIssuerInput, parseInput } from '../../../src/domain/inputs.ts';
import { addIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import type { ScriptedAccount, ScriptedOrder } from '../../harness/ca/scripted-acme-ca.ts';
import { type Engine, tryWork, workOn } from '../../harness/issuance/engine-vault.ts';
import { type Operation, type Watcher, type Worker, workerOn } from '../../harness/issuance/engine-worker.ts';
import { forever, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';

/** A certificate with its state in the vault and at the CA. */
export type OwnOrders = {
  readonly name: string;
  /** All its renewals, newest first. */
  readonly renewals: () => Promise<RenewalRow[]>;
  readonly orders: () => ScriptedOrder[];
  readonly issued: () => ScriptedOrder[];
  readonly accounts: () => ScriptedAccount[];
};

/** A certificate for an apex, its wildcard and a name without a DNS provider; its renewal is queued. */
export async function anotherOrder(
  { vault, ca }: Pick<Engine, 'vault' | 'ca'>,
  name: string,
  domains: readonly string[] = [`${name}.example.test`, `*.${name}.example.test`, `${name}.other.test`],
): Promise<OwnOrders> {
  const issuer = { name: `ca-${name}`, directory_url: ca.directoryUrl, email: `${name}@example.test` };
  await addIssuer(vault, localCli, parseInput(createIssuerInput, issuer), { acceptsTerms: true }, forever);
  await makeCertificate(vault, name, { issuer: `ca-${name}`, domains });
  const renewals = () =>
    vault.db.reader
      .selectFrom('renewals')
      .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
      .selectAll('renewals')
      .where('certificates.name', '=', name)
      .orderBy('renewals.id', 'desc')
      .execute();
  const isOwn = (value: string) => value.replace(/^\*\./, '').startsWith(`${name}.`);
  const orders = () =>
    [...ca.state.orders.values()].filter(({ identifiers }) => identifiers.some(({ value }) => isOwn(value)));
  return {
    ...{ name, renewals, orders },
    issued: () => orders().filter(({ leaf }) => leaf !== undefined),
    accounts: () =>
      [...ca.state.accounts.values()].filter(({ contact }) => String(contact).includes(`:${name}@`)),
  };
}

/** The operations of an undisturbed order. */
export async function undisturbed(opened: Engine): Promise<readonly string[]> {
  const { renewals } = await anotherOrder(opened, 'calm');
  const worker = await workerOn(opened.vault, opened.zone);
  await workOn(worker.vault);
  const [renewal] = await renewals();
  assert.equal(renewal?.status, 'succeeded', String(renewal?.error));
  // At least a directory, a nonce, an account, an order, three authorizations and challenges.
  assert(worker.operations.filter((what) => what !== 'write').length > 15, worker.operations.join());
  return worker.operations;
}

/** The operations of an undisturbed order, and the place of each in a watched one, as far as that has it. */
export type Step = Operation & {
  /** For people. */
  readonly where: string;
  /** Whether a watched order of this name is there: what goes on side by side changes places from order to order. */
  readonly isAt: (at: Operation, name: string) => boolean;
};

/** What an order may do more or less often, since a nonce may be there or still be on its way. */
export const nonceRequest = 'HEAD /new-nonce';

/** The steps of an undisturbed order. */
export async function stepsOf(opened: Engine): Promise<readonly Step[]> {
  const operations = await undisturbed(opened);
  return operations.map((what, index) => {
    const nth = operations.slice(0, index + 1).filter((one) => one === what).length;
    return {
      ...{ what, nth, where: `operation ${index + 1}, ${what} (${nth})` },
      isAt: (at, name) => at.nth === nth && at.what === what.replace('.calm.', `.${name}.`),
    };
  });
}

/** Runs queued renewals on a watched worker until it dies or finishes. */
export async function runWatched(
  { vault, zone }: Engine,
  watch: (worker: Worker) => Watcher,
  signal?: AbortSignal,
): Promise<Worker> {
  const worker: Worker = await workerOn(vault, zone, (at) => watch(worker)(at));
  await Promise.race([tryWork(worker.vault, signal), worker.died]);
  return worker;
}
