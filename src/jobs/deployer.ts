/**
 * Installs certificates on deploy targets when they are due: after a renewal, after a failure, and once a day to check
 * that they are still installed. One node does it for all.
 */
import { second } from '../base/duration.ts';
import { Signal } from '../base/signal.ts';
import { system } from '../domain/audit/audit.ts';
import {
  type DeployContext,
  type DueDeploy,
  deploy,
  nextDueDeploy,
} from '../domain/deploy-targets/deploying.ts';

/** Installations at a time, of which a target has one: each waits for a network most of the time. */
const deploysAtOnce = 16;

const lookEvery = 5 * second;

/** Runs until `signal` is aborted and the last installation has ended. Logs errors and retries. */
export async function runDeployer(vault: DeployContext, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  const running = new Map<number, Promise<void>>();
  const ended = new Signal(world);
  let hasFailed = false;
  const start = async ({ id, deploy_target_id: target }: DueDeploy) => {
    try {
      await deploy(vault, id, system, signal);
    } catch (error) {
      if (!signal.aborted) {
        log.error({ err: error, target }, 'failed to deploy a certificate; retrying');
        hasFailed = true;
      }
    } finally {
      running.delete(target);
      ended.notify();
    }
  };
  while (!signal.aborted) {
    hasFailed = false;
    try {
      while (running.size < deploysAtOnce && !signal.aborted) {
        // A target may have many that are due.
        const due = await nextDueDeploy(vault, [...running.keys()]);
        if (due === undefined) break;
        running.set(due.deploy_target_id, start(due));
      }
    } catch (error) {
      log.error({ err: error }, 'failed to query due deployments; retrying');
    }
    await ended.wait(lookEvery, signal);
    if (hasFailed) await world.sleep(lookEvery, signal);
  }
  await Promise.all(running.values());
}
