/** How commands other than `serve` come to their vault, and leave it closed whatever happens. */
import type { Vault } from '../../domain/vault.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { askAt } from './master-keys.ts';
import { openVault } from './open-vault.ts';

/** Runs `work` on the vault that the options name. `whenMissing` as in `openVault`; a new vault is announced. */
export async function withVault(
  flags: Parameters<typeof readSettings>[0],
  terminal: Terminal,
  whenMissing: 'create' | 'refuse',
  work: (vault: Vault, settings: Settings) => Promise<void>,
): Promise<void> {
  const { world, environment, stderr } = terminal;
  const settings = await readSettings(flags, environment);
  const { vault, isNew, close } = await openVault(settings, world, whenMissing, undefined, askAt(terminal));
  try {
    if (isNew) stderr.write(`A new vault was made in ${settings.dataDir}.\n`);
    await work(vault, settings);
  } finally {
    await close();
  }
}
