/** The vault of commands other than `serve`: opened on this machine and closed afterwards, or reached at a server. */
import type { Vault } from '../../domain/vault.ts';
import { type RemoteVault, remoteVault } from '../remote/remote-vault.ts';
import { commonOptions, readSettings, type Settings } from '../settings/settings.ts';
import { Misuse } from '../terminal/misuse.ts';
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
  const { world, environment, stderr, server } = terminal;
  if (server !== undefined) throw new Error('a command for this machine runs with --server');
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

/**
 * Runs `here` on the vault of this machine as `withVault` does, or `there` on that of the chosen server, and returns
 * its result. Throws Misuse for options of a vault on this machine beside a server.
 */
export async function onVault<T>(
  flags: Parameters<typeof readSettings>[0],
  terminal: Terminal,
  whenMissing: 'create' | 'refuse',
  here: (vault: Vault, settings: Settings) => Promise<T>,
  there: (remote: RemoteVault) => Promise<T>,
): Promise<T> {
  const { server } = terminal;
  if (server === undefined) {
    let result: { readonly value: T } | undefined;
    await withVault(flags, terminal, whenMissing, async (vault, settings) => {
      result = { value: await here(vault, settings) };
    });
    if (result === undefined) throw new Error('the work did not run');
    return result.value;
  }
  const local = Object.keys(commonOptions).find((name) => flags[name as keyof typeof flags] !== undefined);
  if (local === undefined) return there(remoteVault(terminal, server));
  throw new Misuse(
    `--${local} and --server exclude each other`,
    'Use one of them: the server has its own settings.',
  );
}
