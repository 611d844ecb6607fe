/** `vault restore`: restores a backup into the data directory or the database of a server, or only checks it. */
import { existsSync } from 'node:fs';
import { printable } from '../../../base/printable-text.ts';
import { aboutBackup } from '../../../domain/backup/backup-file.ts';
import { checkRestorable, type RestoreOrder, restore } from '../../../domain/backup/restore.ts';
import { restoreIntoServer } from '../../../domain/backup/server-restore.ts';
import { databaseIn } from '../../../domain/instance/vault-database.ts';
import { command } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { masterKeyFrom } from '../../runtime/master-key-command.ts';
import { passphrasePrompt, Unlocking } from '../../runtime/master-keys.ts';
import { passphraseOption, readKnownPassphrase } from '../../runtime/passphrase.ts';
import { readSettings } from '../../settings/settings.ts';
import { refuseExposedVault } from '../../terminal/private-files.ts';

const lossSentence =
  'Changes since the backup are lost: API keys and ACME clients revoked since then are valid again,\n' +
  'and certificates issued since then are missing. Check "vault api-key list", "vault acme-client list" and\n' +
  '"vault certificate list".\n';

export const restoreCommand = command({
  name: 'restore',
  description: 'Restore a backup into the data directory, or into a PostgreSQL database',
  examples: [
    { does: 'Check a backup without restoring it', line: 'vault restore vault.backup --check' },
    {
      does: 'Replace the existing vault, keeping a copy of it',
      line: 'vault restore vault.backup --replace',
    },
    {
      does: 'Restore into an empty PostgreSQL database',
      line: 'vault restore vault.backup --database postgres://vault@db.example.com/vault',
    },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'a file written by "vault backup"',
    },
    check: { type: 'boolean', description: 'check the backup and write nothing' },
    replace: {
      type: 'boolean',
      description: 'replace the existing vault, and keep a copy of it in the data directory',
    },
    ...yesOption,
    ...passphraseOption,
  },
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    const { dataDir, masterKeyFile, masterKeyCommand } = settings;
    const unlocking = new Unlocking(settings, passphrasePrompt(terminal));
    const order: RestoreOrder = {
      file: args.file,
      dataDir,
      masterKeyFile,
      givenKey: masterKeyCommand && (await masterKeyFrom(terminal.world, masterKeyCommand, settings)),
      existing: args.replace || args.check ? 'replace' : 'refuse',
      lockOf: (file) => unlocking.lockOf(file),
      freshLock: () => unlocking.freshLock(terminal.world),
      passphrases: () => readKnownPassphrase(args['passphrase-file'], terminal),
    };
    const say = (line: string) => terminal.stderr.write(`${printable(line)}\n`);
    if (args.check) {
      const { manifest, masterKey, keyIs, keyFile } = await checkRestorable(order);
      const where =
        keyIs === 'there'
          ? keyFile === '-'
            ? masterKeyCommand === undefined
              ? 'the one on standard input'
              : `the one printed by ${masterKeyCommand[0]}`
            : `in ${keyFile}`
          : 'in the backup, and the passphrase is correct';
      say(aboutBackup(args.file, manifest));
      say(`The backup is intact and can be restored. The master key (${masterKey.name}) is ${where}.`);
      return;
    }
    refuseExposedVault(settings, 'create');
    if (settings.database !== undefined) {
      const { database, databaseSurroundings } = settings;
      const restored = await restoreIntoServer(terminal.world, order, database, databaseSurroundings);
      const { manifest, keyIs, place } = restored;
      say(aboutBackup(args.file, manifest));
      say(
        `Restored the vault into ${place}${keyIs === 'there' ? '' : `, with its master key in ${masterKeyFile}`}.`,
      );
      terminal.stderr.write(lossSentence);
      return;
    }
    if (args.replace && existsSync(databaseIn(dataDir).path)) {
      await confirmLoss(terminal, args, {
        question: `Replace the vault in ${dataDir} with ${args.file}? Changes since the backup are lost; a copy of the vault stays.`,
        isPermanent: false,
      });
    }
    const { manifest, keyIs, kept } = await restore(terminal.world, order);
    say(aboutBackup(args.file, manifest));
    say(
      `Restored the vault into ${dataDir}${keyIs === 'there' ? '' : `, with its master key in ${masterKeyFile}`}.`,
    );
    for (const name of kept) say(`Kept: ${name}`);
    terminal.stderr.write(lossSentence);
  },
});
