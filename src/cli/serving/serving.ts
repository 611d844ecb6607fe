/**
 * What a process that serves a vault does, alone or beside others: the listeners, the jobs of each such process, and those
 * that one of them does for all.
 */
import { second } from '../../base/duration.ts';
import type { MasterKey } from '../../crypto/master-key.ts';
import { needsSetup, offerSetup } from '../../domain/access/setup.ts';
import { system } from '../../domain/audit/audit.ts';
import type { Vault } from '../../domain/vault.ts';
import { metricsRoutes } from '../../http/metrics/metrics-routes.ts';
import { consoleReply } from '../../http/routes/console-routes.ts';
import { routesWith } from '../../http/routes/routes.ts';
import { startListeners } from '../../http/server/listeners.ts';
import type { RunningServer } from '../../http/server/server.ts';
import { serverContext } from '../../http/server/server-context.ts';
import { runBackupScheduler } from '../../jobs/backup-scheduler.ts';
import { runChallengeCleaner } from '../../jobs/challenge-cleaner.ts';
import { runKeyUseWriter } from '../../jobs/key-use-writer.ts';
import { runMarkWriter } from '../../jobs/mark-writer.ts';
import { runNotificationWatcher } from '../../jobs/notification-watcher.ts';
import { runNotifier } from '../../jobs/notifier.ts';
import { runRefusalWriter } from '../../jobs/refusal-writer.ts';
import { runRenewalScheduler } from '../../jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../jobs/renewal-worker.ts';
import { runWindowWatcher } from '../../jobs/window-watcher.ts';
import { readAsset, readConsole } from '../runtime/assets.ts';
import type { Settings } from '../settings/settings.ts';
import { quoted } from '../terminal/private-files.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type MeasuredPeers, openMetrics } from './open-metrics.ts';
import { runOwn } from './own-process.ts';
import { auditJobs } from './serve-audit.ts';
import { openTls } from './serve-tls.ts';
import { setupLink } from './setup-link.ts';

/** How long requests in flight may take after SIGTERM. */
export const patience = 10 * second;

/** Listens everywhere that the settings say. Throws OperatorError where that cannot be. */
export async function startServing(
  vault: Vault,
  settings: Settings,
  version: string,
  companions?: MeasuredPeers,
): Promise<RunningServer> {
  const { publicUrl, sessionLimits, clients, workers } = settings;
  const metrics = await openMetrics(vault, settings, companions);
  const tls = await openTls(vault, settings, companions?.ticketSeed);
  const routes = routesWith(readAsset('install.sh'));
  return startListeners(
    serverContext(vault, {
      version,
      publicUrl,
      trustedProxies: clients.trustedProxies,
      apiKeyRate: clients.apiKeyRate,
      // The system shares connections out among the workers, so that each has about as many.
      connectionLimits: { most: Math.ceil(clients.maxConnections / workers) },
      sessionLimits,
      tls: () => tls?.facts ?? null,
      metrics,
      companions,
    }),
    settings.metricsTokenFile === undefined ? routes : [...routes, ...metricsRoutes],
    { ...settings, tls },
    consoleReply(readConsole()),
  );
}

/** What each process that serves does until `stop` is aborted. */
export function ownJobs(vault: Vault, stop: AbortSignal): Promise<void>[] {
  return [runKeyUseWriter(vault, stop), runRefusalWriter(vault, stop)];
}

/** What one process does for all until `stop` is aborted. */
export function sharedJobs(
  vault: Vault,
  settings: Settings,
  { environment, version }: Terminal,
  stop: AbortSignal,
): Promise<void>[] {
  const jobs = [
    // The renewal that ends last may begin a removal after the cleaner has stopped.
    runRenewalWorker(vault, stop).finally(() => vault.removals.end()),
    runRenewalScheduler(vault, stop),
    runWindowWatcher(vault, stop),
    runChallengeCleaner(vault, stop),
    ...auditJobs(vault, settings.audit, stop),
    runNotifier(vault, stop),
    runNotificationWatcher(vault, settings.backups, stop),
    runMarkWriter(vault, stop),
  ];
  if (settings.backups !== undefined) {
    // The key comes by a pipe: nobody can be asked for its passphrase again, and a rotation may move its file meanwhile.
    const verify = (draft: string, masterKey: MasterKey) =>
      runOwn(checkArguments(draft, settings), environment, stop, masterKey.exported());
    jobs.push(runBackupScheduler(vault, settings.backups, { version, verify }, stop));
  }
  return jobs;
}

function checkArguments(draft: string, { dataDir }: Settings): string[] {
  return ['restore', draft, '--check', '--data-dir', dataDir, '--master-key-file', '-'];
}

/**
 * Says how to become the first administrator. A terminal gets the setup link itself, past the log. Elsewhere stderr ends in
 * a journal that others read and keep, so it gets the command that creates a link.
 */
export async function invite(
  vault: Vault,
  { url, dataDir }: { readonly url: string; readonly dataDir: string },
  stderr: Terminal['stderr'],
): Promise<void> {
  try {
    if (!stderr.isTTY) {
      if (await needsSetup(vault)) stderr.write(`${noAdministrator} ${setupCommand(dataDir)}`);
      return;
    }
    const token = await offerSetup(vault, system);
    if (token === undefined) return;
    stderr.write(
      `${noAdministrator} To become the first, open this link within 24 hours; it works once:\n  ${setupLink(url, token)}\n`,
    );
  } catch (error) {
    vault.log.warn({ err: error }, 'could not create a setup link; run "vault admin create"');
  }
}

const noAdministrator = 'There is no administrator yet.';

function setupCommand(dataDir: string): string {
  return `To become the first, create a setup link:\n  vault admin setup-link --data-dir ${quoted(dataDir)}\n`;
}
