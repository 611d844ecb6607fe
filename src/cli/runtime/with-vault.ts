/** Opens the vault for commands other than `serve`, and closes it afterwards. */
import type { Vault } from '../../domain/vault.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { passphrasePrompt } from './master-keys.ts';
import { openVault } from './open-vault.ts';

/** Runs `work` on the vault that the options select. `whenMissing` as in `openVault`; reports a new vault on stderr. */
export async function withVault(
  flags: Parameters<typeof readSettings>[0],
  terminal: Terminal,
  whenMissing: 'create' | 'refuse',
  work: (vault: Vault, settings: Settings) => Promise<void>,
): Promise<void> {
  const { world, environment, stderr } = terminal;
  const settings = await readSettings(flags, environment);
  const { vault, isNew, close } = await openVault(
    settings,
    world,
    whenMissing,
    undefined,
    passphrasePrompt(terminal),
    { onUpgraded: (copy) => stderr.write(`Upgraded the database. Copy from before the upgrade: ${copy}\n`) },
  );
  try {
    if (isNew) stderr.write(`Created a new vault in ${settings.dataDir}.\n`);
    await work(vault, settings);
  } finally {
    await close();
  }
}
