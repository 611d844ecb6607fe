/** `vault database`: moves the vault to another database, and takes that back. */
import { resolve } from 'node:path';
import type { World } from '../../../base/world.ts';
import type { SecretsContext } from '../../../domain/contexts.ts';
import { type CopyTarget, directoryTarget, serverTarget } from '../../../domain/database-copy/copy-target.ts';
import { moveVault, refuseServed, reopenVault } from '../../../domain/database-copy/database-copy.ts';
import { movedTo } from '../../../domain/instance/moved-vault.ts';
import {
  connectDatabase,
  databaseIn,
  isServerUrl,
  openDatabase,
  type VaultDatabase,
} from '../../../domain/instance/vault-database.ts';
import { masterKeyFits } from '../../../domain/master-key/master-key-check.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { passphrasePrompt } from '../../runtime/master-keys.ts';
import { openVault } from '../../runtime/open-vault.ts';
import { refuseVisiblePassword } from '../../settings/database-settings.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { refuseExposedVault } from '../../terminal/private-files.ts';
import type { Terminal } from '../../terminal/terminal.ts';

const copyCommand = command({
  name: 'database copy',
  description: 'Move the vault to an empty PostgreSQL database, or back to a directory',
  examples: [
    {
      does: 'Move a vault from its data directory to PostgreSQL',
      line: 'vault database copy --to postgres://vault@db.example.com/vault',
    },
    {
      does: 'Move it back into a directory',
      line: 'vault database copy --database postgres://vault@db.example.com/vault --to /var/lib/certificate-vault',
    },
  ],
  options: {
    to: {
      type: 'string',
      valueHint: 'URL|DIR',
      required: true,
      description: 'an empty PostgreSQL database, or a directory without a vault',
    },
  },
  run: async (args, terminal) => {
    refuseVisiblePassword({ value: args.to, from: '--to' });
    const settings = await readSettings(args, terminal.environment);
    const source = await openAlone(settings, terminal);
    try {
      if (await isThereAlready(source, args.to)) {
        terminal.stderr.write(`The vault is in ${args.to} already.\n`);
        return;
      }
      await refuseServed(source);
      const target = await openTarget(args.to, settings, terminal.world);
      const copied = await moveVault(source, target);
      const { stderr } = terminal;
      if (copied === undefined) stderr.write('An earlier copy was complete; finished it.\n');
      else {
        const { rows, events, secrets } = copied;
        stderr.write(
          `Copied ${rows} rows. Verified ${events} audit events, and opened ${secrets} sealed secrets.\n`,
        );
      }
      stderr.write(nextSteps(source.db.place, target.place, args.to, settings));
    } finally {
      await source.db.close();
    }
  },
});

const reopenCommand = command({
  name: 'database reopen',
  description: 'Serve this database again after its vault was moved to another one',
  examples: [{ does: 'Go on with the vault in the data directory', line: 'vault database reopen --yes' }],
  options: { ...yesOption },
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    const { vault, close } = await openMoved(settings, terminal);
    try {
      const to = (await movedTo(vault.db.reader)) ?? '';
      if (to !== '') {
        await confirmLoss(terminal, args, {
          question: `Serve ${vault.db.place} again? What changed in ${to} since the move is not in it.`,
          isPermanent: true,
        });
      }
      await reopenVault(vault);
      terminal.stderr.write(
        `The vault in ${vault.db.place} can be served again. Never serve it together with the one in ${to}.\n`,
      );
    } finally {
      await close();
    }
  },
});

export const databaseCommands = commandGroup('database', 'Move the vault to another database', {
  copy: copyCommand,
  reopen: reopenCommand,
});

/** The vault whether it was moved or not, checked as any other command does. */
function openMoved(settings: Settings, terminal: Terminal) {
  return openVault(settings, terminal.world, 'refuse', undefined, passphrasePrompt(terminal), {
    moved: 'open',
  });
}

/**
 * The vault with a database that no other process had open a moment ago, if that can be known. Throws OperatorError.
 */
async function openAlone(settings: Settings, terminal: Terminal): Promise<SecretsContext> {
  const { world } = terminal;
  const { vault, close } = await openMoved(settings, terminal);
  const { keyring } = vault;
  await close();
  if (settings.database === undefined) databaseIn(settings.dataDir).hold().release();
  const db = await reopen(settings, world);
  await masterKeyFits({ db, keyring });
  return { db, keyring, world };
}

function reopen({ database, databaseSurroundings, dataDir }: Settings, world: World): Promise<VaultDatabase> {
  return database === undefined
    ? openDatabase(dataDir, world, { moved: 'open' })
    : connectDatabase(database, {
        ...databaseSurroundings,
        world,
        directory: dataDir,
        moved: 'open',
        connections: 1,
      });
}

async function isThereAlready({ db }: SecretsContext, to: string): Promise<boolean> {
  if (isServerUrl(to) || (await movedTo(db.reader)) !== resolve(to)) return false;
  return databaseIn(to).hasContent();
}

function openTarget(to: string, settings: Settings, world: World): Promise<CopyTarget> {
  if (isServerUrl(to)) {
    return serverTarget(to, { ...settings.databaseSurroundings, world, directory: settings.dataDir });
  }
  refuseExposedVault({ ...settings, dataDir: resolve(to) }, 'create');
  return directoryTarget(to, world);
}

function nextSteps(from: string, to: string, given: string, settings: Settings): string {
  const key =
    settings.masterKeyCommand === undefined
      ? `The master key is not in the database. It stays in ${settings.masterKeyFile}: copy that file, with mode 0600, to `
      : 'The master key is not in the database. The command that prints it must work on ';
  const lines = isServerUrl(given)
    ? [`${key}each node.`, `Start each node with: vault serve --database ${to}`]
    : [
        `${key}${settings.masterKeyCommand === undefined ? resolve(to, 'master.key') : 'this machine'}.`,
        `Start it with: vault serve --data-dir ${to}`,
      ];
  return `${[
    ...lines,
    `${from} refuses commands and servers from now on; "vault database reopen" would take that back.`,
    'Make a backup of the vault in its new place, then delete the old database.',
  ].join('\n')}\n`;
}
