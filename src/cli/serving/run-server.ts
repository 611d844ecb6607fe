/**
 * A serving process: listeners, jobs of each process, jobs that one node runs for all, and the order in which they end.
 */
import { setFlagsFromString } from 'node:v8';
import { second } from '../../base/duration.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { needsSetup, offerSetup } from '../../domain/access/setup.ts';
import { system } from '../../domain/audit/audit.ts';
import { recordServedSettings } from '../../domain/instance/served-settings.ts';
import { beginServing, endServing } from '../../domain/instance/served-vault.ts';
import type { ServedSettings } from '../../domain/nodes/server-record.ts';
import { crlBaseUrl, recordCrlBaseUrl } from '../../domain/private-ca/crl-address.ts';
import type { Vault } from '../../domain/vault.ts';
import { consoleReply } from '../../http/routes/console-routes.ts';
import { metricsRoutes } from '../../http/routes/metrics-routes.ts';
import { serverContext } from '../../http/server/listener-context.ts';
import { startListeners } from '../../http/server/listeners.ts';
import { routesWith } from '../../http/server/routes.ts';
import type { RunningServer } from '../../http/server/server.ts';
import { runBackupScheduler } from '../../jobs/backup-scheduler.ts';
import { runDeployer } from '../../jobs/deployer.ts';
import { runEndpointProber } from '../../jobs/endpoint-prober.ts';
import { type BeginJobs, runLeader } from '../../jobs/leader.ts';
import { runNotificationWatcher } from '../../jobs/notification-watcher.ts';
import { runNotifier } from '../../jobs/notifier.ts';
import {
  runChallengeCleaner,
  runKeyUseWriter,
  runLogEndReport,
  runLogEndWatcher,
  runMarkWriter,
  runNodeRecorder,
  runNoncePruning,
  runPrivateCaLog,
  runRefusalWriter,
  runWindowWatcher,
} from '../../jobs/periodic-jobs.ts';
import { runPruning } from '../../jobs/pruning.ts';
import { runRenewalScheduler } from '../../jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../jobs/renewal-worker.ts';
import { runReplacementWorker } from '../../jobs/replacement-worker.ts';
import { runScanner } from '../../jobs/scanner.ts';
import { readAsset, readConsole, readInstaller } from '../runtime/assets.ts';
import { connectionsBeside } from '../runtime/open-files.ts';
import { hostName } from '../settings/host-name.ts';
import { readProviderSettings } from '../settings/oidc-settings.ts';
import { recordedSettings } from '../settings/recorded-settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { BackupProcess } from './backup-process.ts';
import { openMetrics } from './open-metrics.ts';
import { auditJobs } from './serve-audit.ts';
import { openTls } from './serve-tls.ts';
import { setupLink } from './setup-link.ts';

/** How long requests in flight may take after a stop signal. */
const stopTimeout = 10 * second;

/**
 * Collects garbage when the heap has grown by half, not when it is four times as large, which is worth 70 MB. As an
 * option of the executable, this would cost each start 20 to 60 ms: V8 rejects code that was compiled with other
 * options, so Node would compile its own modules again. Set it once they are loaded.
 */
const collectOften = '--heap-growing-percent=50';

type Program = Pick<Terminal, 'environment' | 'version'>;

/** A server that can adopt reloaded settings. */
type LiveServer = RunningServer & { readonly adopt: (settings: Settings) => void };

/** How a vault is served. */
export type ServerRun = {
  readonly settings: Settings;
  readonly program: Program;
  /** The random name of this server. */
  readonly instance: string;
  /** Ends the jobs; then call `shutDown`. */
  readonly stop: AbortSignal;
};

export type RunningVault = {
  readonly url: string;
  /** Adopts what a reload may change. */
  readonly adopt: (settings: Settings) => void;
  /**
   * After `stop`: ends listeners and jobs, and `others`, which began beside them. What remains is to close the vault,
   * which ends validations and writes what is counted.
   */
  readonly shutDown: (others?: readonly Promise<unknown>[]) => Promise<void>;
};

/** Serves the vault. Throws OperatorError if a listener cannot start. */
export async function runServer(
  vault: Vault,
  { settings, program, instance, stop }: ServerRun,
): Promise<RunningVault> {
  await beginServing(vault);
  const server = await startServing(vault, settings, program.version);
  const recorded = recordedSettings(settings, { url: server.url, instance, keyring: vault.keyring });
  await recordServedSettings(vault, recorded);
  const jobs = [...ownJobs(vault, stop), ...sharedJobs(vault, settings, program, recorded, stop)];
  setFlagsFromString(collectOften);
  return {
    url: server.url,
    adopt: server.adopt,
    // Each step waits for the one before it.
    shutDown: async (others = []) => {
      await server.stop(stopTimeout);
      await Promise.all([...jobs, ...others]);
      await endServing(vault, instance);
    },
  };
}

/** Starts all listeners in the settings. Throws OperatorError if one cannot start. */
async function startServing(vault: Vault, settings: Settings, version: string): Promise<LiveServer> {
  const { publicUrl, sessionLimits, secondApproval, requireSecondFactor, clients, oidc } = settings;
  const metrics = await openMetrics(vault, settings);
  const tls = await openTls(vault, settings);
  const routes = routesWith({
    installer: readInstaller(version),
    trust: readAsset('install-ca.sh'),
  });
  const context = serverContext(vault, {
    version,
    publicUrl,
    termsOfService: settings.acmeServer.termsOfService,
    trustedProxies: clients.trustedProxies,
    apiKeyRate: clients.apiKeyRate,
    connectionLimits: { most: clients.maxConnections },
    maxWaits: connectionsBeside(clients.maxConnections),
    sessionLimits,
    secondApproval,
    keepDeleted: settings.keepDeleted,
    requireSecondFactor,
    oidc: oidc && readProviderSettings(oidc),
    tls: () => tls?.facts ?? null,
    metrics,
  });
  const running = await startListeners(
    context,
    settings.metricsTokenFile === undefined ? routes : [...routes, ...metricsRoutes],
    { ...settings, tls },
    consoleReply(readConsole()),
  );
  await recordCrlBaseUrl(vault, crlBaseUrl(publicUrl, settings.acmeHttpListen !== undefined));
  return {
    ...running,
    adopt: (next) => context.adopt({ ...next, trustedProxies: next.clients.trustedProxies }),
  };
}

/** Starts the jobs of every serving process; they run until `stop` is aborted. */
function ownJobs(vault: Vault, stop: AbortSignal): Promise<void>[] {
  return [runKeyUseWriter(vault, stop), runRefusalWriter(vault, stop), runLogEndWatcher(vault, stop)];
}

/**
 * Starts the jobs that one node runs for all; they run until `stop` is aborted. Where nodes share the database, they
 * run on one node at a time, and `recorded` is what the others see of this one.
 */
export function sharedJobs(
  vault: Vault,
  settings: Settings,
  program: Program,
  recorded: ServedSettings,
  stop: AbortSignal,
): Promise<void>[] {
  const { sharedClock } = vault;
  if (sharedClock === undefined) return leadingJobs(vault, settings, program, stop);
  const node = { host: hostName(), version: program.version, settings: recorded };
  const shared = { ...vault, sharedClock };
  const begin: BeginJobs = (db, signal) => leadingJobs({ ...vault, db }, settings, program, signal);
  return [runNodeRecorder(shared, node, stop), runLeader(shared, recorded.instance, begin, stop)];
}

function leadingJobs(
  vault: Vault,
  settings: Settings,
  { environment }: Program,
  stop: AbortSignal,
): Promise<void>[] {
  const jobs = [
    // The last renewal may start removing a challenge record after the cleaner has stopped.
    runRenewalWorker(vault, stop).finally(() => vault.removals.end()),
    runRenewalScheduler(vault, stop),
    runWindowWatcher(vault, stop),
    runReplacementWorker(vault, stop),
    runChallengeCleaner(vault, stop),
    ...auditJobs(vault, settings.audit, stop),
    runPruning(
      vault,
      {
        auditEvents: settings.audit.keepFor,
        deletedCertificates: settings.keepDeleted,
        versions: settings.keepVersions,
      },
      stop,
    ),
    runNoncePruning(vault, stop),
    runNotifier(vault, stop),
    runDeployer(vault, stop),
    runEndpointProber(vault, stop),
    runScanner(vault, stop),
    runNotificationWatcher(vault, settings.backups, stop),
    runPrivateCaLog(vault, stop),
    runLogEndReport(vault, stop),
  ];
  // A database that nodes share is no file beside which a mark could lie.
  if (vault.sharedClock === undefined) jobs.push(runMarkWriter(vault, stop));
  if (settings.backups !== undefined) {
    const apart = new BackupProcess(settings, vault.keyring, environment, vault.world);
    const backups = runBackupScheduler(vault, (signal) => apart.run(signal), stop);
    // The next node to run them knows how they go.
    const forget = () => vault.backupHealth.succeeded();
    jobs.push(vault.sharedClock === undefined ? backups : backups.finally(forget));
  }
  return jobs;
}

/**
 * Prints how to create the first administrator. On a terminal it prints the setup link. Otherwise stderr goes to a
 * journal that others can read, so it prints the command that creates a link.
 */
export async function announceSetup(
  vault: Vault,
  { url, dataDir }: { readonly url: string; readonly dataDir: string },
  stderr: Terminal['stderr'],
): Promise<void> {
  try {
    if (!stderr.isTTY) {
      if (await needsSetup(vault)) stderr.write(`${noAdministrator} ${setupCommand(vault, dataDir)}`);
      return;
    }
    const token = await offerSetup(vault, system);
    if (token === undefined) return;
    stderr.write(
      `${noAdministrator} To create one, open this link within 24 hours; it works once:\n  ${setupLink(url, token)}\n`,
    );
  } catch (error) {
    vault.log.warn({ err: error }, 'could not create a setup link; run "vault admin create"');
  }
}

const noAdministrator = 'No administrator yet.';

function setupCommand({ db }: Pick<Vault, 'db'>, dataDir: string): string {
  const server = db.file === undefined ? ` --database ${quoted(db.place)}` : '';
  return `To create one, print a setup link:\n  vault admin setup-link --data-dir ${quoted(dataDir)}${server}\n`;
}
