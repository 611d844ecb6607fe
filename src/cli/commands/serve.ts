/** `vault serve`: runs the server and its background jobs until a graceful stop. */
import { once } from 'node:events';
import { clockFault } from '../../domain/doctor/upkeep-findings.ts';
import type { Vault } from '../../domain/vault.ts';
import { runWatchdog } from '../../jobs/watchdog.ts';
import { command } from '../runtime/command.ts';
import { catchHangups } from '../runtime/hangup-signal.ts';
import { openLog, type ServerLog } from '../runtime/log-output.ts';
import { passphrasePrompt } from '../runtime/master-keys.ts';
import { openVault } from '../runtime/open-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { startWriterThread } from '../runtime/writer-thread.ts';
import { refuseUnusable, reload, type ServerStart } from '../serving/reload.ts';
import { announceSetup, runServer } from '../serving/run-server.ts';
import { supervisorIn } from '../serving/supervisor.ts';
import { readSettings, serveOptions } from '../settings/settings.ts';
import { refuseForeignDataDirectory } from '../terminal/private-files.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const serveCommand = command({
  name: 'serve',
  description: 'Run the server: HTTP API, console and renewals',
  examples: [
    { does: 'Serve clients on this machine', line: 'vault serve' },
    {
      does: 'Serve other machines over HTTPS, with a certificate from the private CA',
      line: 'vault serve --listen 0.0.0.0:8443 --public-url https://vault.example.com:8443 --tls-certificate vault',
    },
  ],
  options: serveOptions,
  run: async (args, terminal) => {
    const hangups = catchHangups();
    const read = () => readSettings(args, terminal.environment);
    const settings = await read();
    refuseForeignDataDirectory(settings.dataDir);
    await refuseUnusable(settings);
    const stop = stopSignal();
    const log = openLog(settings.logLevel, { forPerson: terminal.stderr.isTTY, world: terminal.world });
    for (const variable of settings.ignoredVariables) {
      const use = variable.replace(/^VAULT_/, 'CERTVAULT_');
      log.warn({ variable, use }, 'environment variable ignored; its value is one for HashiCorp Vault');
    }
    if (settings.workers !== undefined) {
      log.warn({ setting: settings.workers }, 'setting ignored: the vault serves in one process; remove it');
    }
    const instance = terminal.world.randomBytes(8).toString('hex');
    const { vault, isNew, close } = await openVault(
      settings,
      terminal.world,
      'create',
      log,
      passphrasePrompt(terminal),
      {
        startThread: startWriterThread,
        onUpgraded: (copy) => log.info({ copy }, 'database upgraded; kept a copy from before the upgrade'),
      },
    );
    try {
      await vault.db.check();
      if (isNew)
        log.info(
          { data_dir: settings.dataDir },
          'vault created; keep a copy of its master key on another machine',
        );
      const clock = await clockFault(vault);
      if (clock !== undefined) log.warn({ hint: clock.hint }, clock.message);
      await serve(vault, { settings, instance, read, hangups }, terminal, stop, log);
    } finally {
      await close();
    }
  },
});

async function serve(
  vault: Vault,
  { settings, instance, read, hangups }: ServerStart,
  terminal: Terminal,
  stop: AbortSignal,
  log: ServerLog,
): Promise<void> {
  const { environment, stdout, stderr, version } = terminal;
  const server = await runServer(vault, { settings, program: terminal, instance, stop });
  const supervisor = supervisorIn(environment, log);
  const { watchdogInterval } = supervisor;
  const listening = `STATUS=listening on ${server.url}`;
  const notifyHealth = (failed: readonly string[]) =>
    failed.length === 0
      ? supervisor.notify('WATCHDOG=1', listening)
      : supervisor.notify(`STATUS=not working: ${failed.join(', ')}`);
  const watchdog =
    watchdogInterval === undefined ? undefined : runWatchdog(vault, watchdogInterval, notifyHealth, stop);
  await announceSetup(vault, { url: settings.publicUrl ?? server.url, dataDir: settings.dataDir }, stderr);
  log.info({ url: server.url, version }, 'listening');
  // The log is flushed once per turn: flush it before printing the line that other programs wait for.
  await terminal.world.turn();
  stdout.write(`listening on ${server.url}\n`);
  await supervisor.notify('READY=1', listening);
  let running = settings;
  hangups.onReload(async () => {
    if (stop.aborted) return;
    await reload(running, read, log, (next) => {
      running = next;
      server.adopt(next);
    });
  });
  if (!stop.aborted) await once(stop, 'abort');
  log.info({ signal: stop.reason }, 'stopping');
  const notified = supervisor.notify('STOPPING=1', 'STATUS=stopping');
  await server.shutDown([notified, ...(watchdog === undefined ? [] : [watchdog])]);
  log.info({}, 'stopped');
}
