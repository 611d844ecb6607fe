/** `vault serve`: the server with its jobs, from its start to its graceful stop; alone, or as the first of several processes. */
import { once } from 'node:events';
import type { Log } from '../../base/log.ts';
import { beginServing, endServing } from '../../domain/presence/served-vault.ts';
import type { Vault } from '../../domain/vault.ts';
import { runWatchdog } from '../../jobs/watchdog.ts';
import { command } from '../runtime/command.ts';
import { openLog } from '../runtime/log-output.ts';
import { askAt } from '../runtime/master-keys.ts';
import { openVault } from '../runtime/open-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { collectorOf } from '../serving/serve-audit.ts';
import { refuseUnsafe } from '../serving/serve-tls.ts';
import { invite, ownJobs, patience, sharedJobs, startServing } from '../serving/serving.ts';
import { supervisorIn } from '../serving/supervisor.ts';
import { readSettings, type Settings, serveOptions } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { isWorker } from '../workers/worker-process.ts';

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
    // What several processes need is loaded by them alone.
    if (isWorker(terminal.environment)) return (await import('../workers/worker.ts')).serveAsWorker(terminal);
    const settings = await readSettings(args, terminal.environment);
    refuseUnsafe(settings);
    collectorOf(settings.audit);
    const stop = stopSignal();
    const log = await openLog(settings.logLevel, { forPerson: terminal.stderr.isTTY, world: terminal.world });
    if (settings.workers > 1) {
      return (await import('../workers/workers.ts')).serveOnWorkers(settings, terminal, stop, log);
    }
    const { vault, isNew, close } = await openVault(settings, terminal.world, 'create', log, askAt(terminal));
    try {
      await vault.db.check();
      if (isNew)
        log.info(
          { data_dir: settings.dataDir },
          'a new vault was made; keep a copy of its master.key elsewhere',
        );
      await beginServing(vault);
      await serve(vault, settings, terminal, stop, log);
      await endServing(vault);
    } finally {
      await close();
    }
  },
});

async function serve(
  vault: Vault,
  settings: Settings,
  terminal: Terminal,
  stop: AbortSignal,
  log: Log,
): Promise<void> {
  const { environment, stdout, stderr, version } = terminal;
  const server = await startServing(vault, settings, version);
  const jobs = [...ownJobs(vault, stop), ...sharedJobs(vault, settings, terminal, stop)];
  const supervisor = supervisorIn(environment, log);
  const { watchdogInterval } = supervisor;
  const listening = `STATUS=listening on ${server.url}`;
  const signOfLife = (failed: readonly string[]) =>
    failed.length === 0
      ? supervisor.tell('WATCHDOG=1', listening)
      : supervisor.tell(`STATUS=not working: ${failed.join(', ')}`);
  if (watchdogInterval !== undefined) jobs.push(runWatchdog(vault, watchdogInterval, signOfLife, stop));
  await invite(vault, { url: settings.publicUrl ?? server.url, dataDir: settings.dataDir }, stderr);
  log.info({ url: server.url, version }, 'listening');
  // The log is written once a turn: what stands in it so far comes before the line that others wait for.
  await terminal.world.turn();
  stdout.write(`listening on ${server.url}\n`);
  await supervisor.tell('READY=1', listening);
  if (!stop.aborted) await once(stop, 'abort');
  log.info({ signal: stop.reason }, 'stopping');
  const told = supervisor.tell('STOPPING=1', 'STATUS=stopping');
  await server.stop(patience);
  await Promise.all([...jobs, told]);
  log.info({}, 'stopped');
}
