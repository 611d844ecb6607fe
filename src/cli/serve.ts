/** `vault serve`: the server with its jobs, from its start to its graceful stop. */
import { once } from 'node:events';
import { second } from '../base/duration.ts';
import type { Log } from '../base/log.ts';
import { OperatorError } from '../base/operator-error.ts';
import { Authenticator } from '../domain/authentication.ts';
import { Downloads } from '../domain/downloads.ts';
import type { Vault } from '../domain/vault.ts';
import { startListeners } from '../http/listeners.ts';
import { routesWith } from '../http/routes.ts';
import { runChallengeCleaner } from '../jobs/challenge-cleaner.ts';
import { runKeyUseWriter } from '../jobs/key-use-writer.ts';
import { runRenewalScheduler } from '../jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../jobs/renewal-worker.ts';
import { runWindowWatcher } from '../jobs/window-watcher.ts';
import { readAsset } from './assets.ts';
import { command, type Terminal } from './command.ts';
import { openLog } from './log-output.ts';
import { openVault } from './open-vault.ts';
import { isLoopback, readSettings, type Settings, serveOptions } from './settings.ts';
import { stopSignal } from './stop-signal.ts';

/** How long requests in flight may take after SIGTERM. */
const patience = 10 * second;

export const serveCommand = command({
  name: 'serve',
  description: 'serve the vault over HTTP and renew its certificates',
  options: serveOptions,
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    refusePlainHttp(settings);
    const stop = stopSignal();
    const log = await openLog(settings.logLevel, { forPerson: terminal.stderr.isTTY });
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
  { stdout, version }: Terminal,
  stop: AbortSignal,
  log: Log,
): Promise<void> {
  const authenticator = new Authenticator(vault);
  const downloads = new Downloads(vault);
  const server = await startListeners(
    { vault, authenticator, downloads, version, publicUrl: settings.publicUrl },
    routesWith(readAsset('install.sh')),
    settings,
  );
  const jobs = [
    runRenewalWorker(vault, stop),
    runRenewalScheduler(vault, stop),
    runWindowWatcher(vault, stop),
    runChallengeCleaner(vault, stop),
    runKeyUseWriter(vault, stop),
  ];
  stdout.write(`listening on ${server.url}\n`);
  log.info({ url: server.url, version }, 'listening');
  if (!stop.aborted) await once(stop, 'abort');
  log.info({ signal: stop.reason }, 'stopping');
  await server.stop(patience);
  await Promise.all(jobs);
  log.info({}, 'stopped');
}

function refusePlainHttp({ listen, insecureHttp }: Settings): void {
  if (insecureHttp || isLoopback(listen.host)) return;
  throw new OperatorError(`plain HTTP on ${listen.host} would show private keys to everybody on the way`, {
    hint: 'Listen on 127.0.0.1 behind a proxy that speaks HTTPS, or accept the risk with --insecure-http.',
  });
}
