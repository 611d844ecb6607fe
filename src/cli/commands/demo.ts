/** `vault demo`: serves a vault full of examples from a temporary directory, which is deleted when the command ends. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { quoted } from '../../base/paths/shell-word.ts';
import { offerSetup } from '../../domain/access/setup.ts';
import { localCli, system } from '../../domain/audit/audit.ts';
import type { Vault } from '../../domain/vault.ts';
import { runDemoClient } from '../demo/demo-client.ts';
import { createClientKey } from '../demo/demo-steps.ts';
import { createDemoVault } from '../demo/demo-vault.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { openVault } from '../runtime/open-vault.ts';
import { named } from '../runtime/program-name.ts';
import { stopAndCleanUp } from '../runtime/stop-signal.ts';
import { runServer } from '../serving/run-server.ts';
import { setupLink } from '../serving/setup-link.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const demoCommand = commandWithoutVault({
  name: 'demo',
  description: 'Try the console on a throw-away vault with examples',
  examples: [{ does: 'Start a demo, and open the link that it prints', line: 'vault demo' }],
  options: {},
  run: async (_, terminal) => {
    const { world, environment, stderr } = terminal;
    let dir: string | undefined;
    const stop = stopAndCleanUp(() => {
      if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
    });
    dir = mkdtempSync(join(environment.TMPDIR || '/tmp', 'vault-demo-'));
    // Neither settings nor variables of this user's vault apply. The client of the demo is on loopback.
    const flags = { 'data-dir': join(dir, 'data'), listen: '127.0.0.1:0', 'allow-outbound': '127.0.0.1' };
    const settings = await readSettings(flags, {});
    stderr.write('Creating a vault with examples…\n');
    try {
      await createDemoVault(settings, world, stop);
    } catch (error) {
      if (stop.aborted) return;
      throw error;
    }
    // Without a log: the renewals of the absent CA fail, and the console shows it.
    const { vault, close } = await openVault(settings, world, 'refuse');
    try {
      await serve(vault, settings, terminal, stop);
    } finally {
      await close();
    }
  },
});

async function serve(vault: Vault, settings: Settings, terminal: Terminal, stop: AbortSignal): Promise<void> {
  const instance = vault.world.randomBytes(8).toString('hex');
  const server = await runServer(vault, { settings, program: terminal, instance, stop });
  const { url } = server;
  const { raw: apiKey } = await createClientKey(vault, localCli);
  const client = runDemoClient(vault, { url, apiKey }, stop);
  const token = await offerSetup(vault, system);
  const link = token === undefined ? url : setupLink(url, token);
  terminal.stdout.write(welcome({ url, link, dataDir: settings.dataDir }));
  if (!stop.aborted) await once(stop, 'abort');
  await server.shutDown([client]);
}

function welcome({ url, link, dataDir }: Readonly<Record<'url' | 'link' | 'dataDir', string>>): string {
  return named(
    `Demo of Certificate Vault at ${url}\n\n` +
      `Open this link to choose a name and a password for the console; it works once:\n  ${link}\n\n` +
      'The client web-server-1 downloads "web" and "api" when they change: renew one and watch the audit log.\n' +
      `Commands work, too:\n  vault certificate list --data-dir ${quoted(dataDir)}\n\n` +
      'This is a demo: when it ends, with Ctrl-C, everything in it is deleted.\n',
  );
}
