/** Writes what a document says about a deploy target. */
import type { Writer } from '../../db/database.ts';
import type { Actor } from '../audit/audit.ts';
import type { SealingContext } from '../contexts.ts';
import { storeDeployTarget, storeDeployTargetChange } from '../deploy-targets/deploy-targets.ts';
import type { Change } from './state-plan.ts';
import type { WantedDeployTarget } from './wanted-state.ts';

/** Creates or changes the target in the caller's transaction. */
export async function applyDeployTarget(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { input, secret }: WantedDeployTarget,
  { action, name, fields }: Change,
): Promise<void> {
  if (action === 'create') {
    if (secret === undefined) throw new Error(`the deploy target ${name} was not checked`);
    await storeDeployTarget(vault, writer, actor, input, secret);
    return;
  }
  // The certificates stay installed if the settings are the same.
  const isOther = fields.some(({ field }) => field === 'secret');
  await storeDeployTargetChange(vault, writer, actor, name, input, isOther ? secret : undefined);
}
