/** `vault serve`: the server with its jobs, from its start to its graceful stop. */
import { once } from 'node:events';
import { second } from '../base/duration.ts';
import type { Log } from '../base/log.ts';
import { offerSetup } from '../domain/setup.ts';
import type { Vault } from '../domain/vault.ts';
import { consoleReply } from '../http/console-routes.ts';
import { startListeners } from '../http/listeners.ts';
import { routesWith } from '../http/routes.ts';
import { serverContext } from '../http/server-context.ts';
import { runAuditRetention } from '../jobs/audit-retention.ts';
import { runBackupScheduler } from '../jobs/backup-scheduler.ts';
import { runChallengeCleaner } from '../jobs/challenge-cleaner.ts';
import { runKeyUseWriter } from '../jobs/key-use-writer.ts';
import { runRenewalScheduler } from '../jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../jobs/renewal-worker.ts';
import { runWatchdog } from '../jobs/watchdog.ts';
import { runWindowWatcher } from '../jobs/window-watcher.ts';
import { readAsset, readConsole } from './assets.ts';
import { command, type Terminal } from './command.ts';
import { openLog } from './log-output.ts';
import { openVault } from './open-vault.ts';
import { runOwn } from './own-process.ts';
import { openTls, refuseUnsafe } from './serve-tls.ts';
import { readSettings, type Settings, serveOptions } from './settings.ts';
import { stopSignal } from './stop-signal.ts';
import { supervisorIn } from './supervisor.ts';

/** How long requests in flight may take after SIGTERM. */
const patience = 10 * second;

export const serveCommand = command({
  name: 'serve',
  description: 'serve the vault over HTTP and renew its certificates',
  examples: [
    { does: 'Serve programs on this machine', line: 'vault serve' },
    {
      does: 'Serve other machines, with a certificate that the private CA makes',
      line: 'vault serve --listen 0.0.0.0:8443 --public-url https://vault.example.com:8443 --tls-certificate vault',
    },
  ],
  options: serveOptions,
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    refuseUnsafe(settings);
    const stop = stopSignal();
    const log = await openLog(settings.logLevel, { forPerson: terminal.stderr.isTTY, world: terminal.world });
    const { vault, isNew, close } = await openVault(settings, terminal.world, 'create', log);
    try {
      await vault.db.check();
      if (isNew)
        log.info(
          { data_dir: settings.dataDir },
          'a new vault was made; keep a copy of its master.key elsewhere',
        );
      await serve(vault, settings, terminal, stop, log);
    } finally {
      await close();
    }
  },
});

async function serve(
  vault: Vault,
  settings: Settings,
  { environment, stdout, stderr, version }: Terminal,
  stop: AbortSignal,
  log: Log,
): Promise<void> {
  const { publicUrl, sessionLimits, clients } = settings;
  const tls = await openTls(vault, settings);
  const server = await startListeners(
    serverContext(vault, {
      version,
      publicUrl,
      trustedProxies: clients.trustedProxies,
      apiKeyRate: clients.apiKeyRate,
      connectionLimits: { most: clients.maxConnections },
      sessionLimits,
      tls: () => tls?.facts ?? null,
    }),
    routesWith(readAsset('install.sh')),
    { ...settings, tls },
    consoleReply(readConsole()),
  );
  const jobs = [
    runRenewalWorker(vault, stop),
    runRenewalScheduler(vault, stop),
    runWindowWatcher(vault, stop),
    runChallengeCleaner(vault, stop),
    runKeyUseWriter(vault, stop),
  ];
  const { keepFor } = settings.audit;
  if (keepFor !== undefined) jobs.push(runAuditRetention(vault, keepFor, stop));
  if (settings.backups !== undefined) {
    const verify = (draft: string) => runOwn(checkArguments(draft, settings), environment, stop);
    jobs.push(runBackupScheduler(vault, settings.backups, { version, verify }, stop));
  }
  const supervisor = supervisorIn(environment, log);
  const { watchdogInterval } = supervisor;
  const listening = `STATUS=listening on ${server.url}`;
  const signOfLife = (failed: readonly string[]) =>
    failed.length === 0
      ? supervisor.tell('WATCHDOG=1', listening)
      : supervisor.tell(`STATUS=not working: ${failed.join(', ')}`);
  if (watchdogInterval !== undefined) jobs.push(runWatchdog(vault, watchdogInterval, signOfLife, stop));
  await invite(vault, publicUrl ?? server.url, stderr);
  stdout.write(`listening on ${server.url}\n`);
  log.info({ url: server.url, version }, 'listening');
  await supervisor.tell('READY=1', listening);
  if (!stop.aborted) await once(stop, 'abort');
  log.info({ signal: stop.reason }, 'stopping');
  const told = supervisor.tell('STOPPING=1', 'STATUS=stopping');
  await server.stop(patience);
  await Promise.all([...jobs, told]);
  log.info({}, 'stopped');
}

function checkArguments(draft: string, { dataDir, masterKeyFile }: Settings): string[] {
  return ['restore', draft, '--check', '--data-dir', dataDir, '--master-key-file', masterKeyFile];
}

/**
 * Shows the setup link where there is no administrator: past the log, because whoever has it becomes one. The token is in
 * the fragment, which browsers send to nobody.
 */
async function invite(vault: Vault, url: string, stderr: Terminal['stderr']): Promise<void> {
  try {
    const token = await offerSetup(vault);
    if (token === undefined) return;
    stderr.write(
      `There is no administrator yet. To become the first, open this link within 24 hours; it works once:\n  ${url}/setup#token=${token.expose()}\n`,
    );
  } catch (error) {
    vault.log.warn({ err: error }, 'no setup link could be made; "vault admin create" may do');
  }
}
