/** Replacements in tests: created, carried out step by step, and what has become of each certificate. */
import { second } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deploymentReport } from '../../../src/domain/deployments/deployment-inputs.ts';
import { reportDeployment } from '../../../src/domain/deployments/deployment-reports.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { replacementInput, replacementRequest } from '../../../src/domain/replacements/replacement-inputs.ts';
import { workReplacements } from '../../../src/domain/replacements/replacement-round.ts';
import { pageOfReplaced, replacedView } from '../../../src/domain/replacements/replacement-views.ts';
import { createReplacement } from '../../../src/domain/replacements/replacements.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeKey } from '../http/fixtures.ts';
import { report } from '../http/fleet.ts';
import type { TestWorld } from '../test-world.ts';
import { tryWork } from './engine-vault.ts';
import { forever } from './renewal-fixtures.ts';

export async function replace(vault: Vault, input: object): Promise<number> {
  return createReplacement(vault, localCli, replacementRequest(parseInput(replacementInput, input)));
}

/** What the job does when it looks: the due steps of this moment. */
export async function round(vault: Vault): Promise<void> {
  while (await workReplacements(vault, forever));
}

/** Lets the job look, the renewals run, and the job look again. */
export async function renewed({ vault, world }: { vault: Vault; world: TestWorld }): Promise<void> {
  await round(vault);
  while ((await tryWork(vault)) !== undefined);
  world.advance(5 * second);
  await round(vault);
  await round(vault);
}

/** `name: state, live of places` of each certificate, with its error. */
export async function progressOf(vault: Vault, id: number): Promise<string[]> {
  const rows = await pageOfReplaced(vault, id, { limit: 100 });
  return rows.map(replacedView).map(({ certificate, state, live, places, error, finished }) => {
    const end = error === null ? '' : `; ${error}`;
    return `${certificate}: ${state}${places > 0 ? ` ${live} of ${places}` : ''}${finished ? ', finished' : ''}${end}`;
  });
}

/** Lets clients report that they installed versions of `www`. */
export async function reporting(vault: Vault) {
  const { id, actor } = await makeKey(vault, { certificates: ['*'], scopes: ['certificates:read'] });
  return async (name: string, version: number, others: object = {}): Promise<void> => {
    const body = parseInput(deploymentReport, { ...report, next_run_at: null, version, ...others });
    await reportDeployment(vault, { name: actor }, id, { certificate: 'www', name }, body);
  };
}
