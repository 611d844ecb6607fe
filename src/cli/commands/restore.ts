/** `vault restore`: a backup becomes the vault of the data directory, or is only checked. */
import { aboutBackup } from '../../domain/backup/backup-file.ts';
import { checkRestorable, type RestoreOrder, restore } from '../../domain/backup/restore.ts';
import { command } from '../runtime/command.ts';
import { masterKeyFrom } from '../runtime/master-key-command.ts';
import { askAt, Unlocking } from '../runtime/master-keys.ts';
import { passphraseOption, readKnownPassphrase } from '../runtime/passphrase.ts';
import { readSettings } from '../settings/settings.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';

export const restoreCommand = command({
  name: 'restore',
  description: 'make a backup the vault of the data directory',
  examples: [
    { does: 'See whether it could be restored', line: 'vault restore vault.backup --check' },
    {
      does: 'Put it in the place of the vault that is there, which is kept',
      line: 'vault restore vault.backup --replace',
    },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'what "vault backup" has written',
    },
    check: { type: 'boolean', description: 'only check whether it could be restored, and write nothing' },
    replace: {
      type: 'boolean',
      description: 'put it in the place of the vault that is there, and keep that beside it',
    },
    ...passphraseOption,
  },
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    const { dataDir, masterKeyFile, masterKeyCommand } = settings;
    const unlocking = new Unlocking(settings, askAt(terminal));
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
    const say = (line: string) => terminal.stderr.write(`${line}\n`);
    if (args.check) {
      const { manifest, masterKey, keyIs, keyFile } = await checkRestorable(order);
      const where =
        keyIs === 'there'
          ? keyFile === '-'
            ? masterKeyCommand === undefined
              ? 'the one that was given'
              : `the one that ${masterKeyCommand[0]} prints`
            : keyFile
          : 'in the backup, and the passphrase opens it';
      say(aboutBackup(args.file, manifest));
      say(`It is whole and can be restored. The master key (${masterKey.name}) is ${where}.`);
      return;
    }
    refuseExposedVault(settings, 'create');
    const { manifest, keyIs, kept } = await restore(terminal.world, order);
    say(aboutBackup(args.file, manifest));
    say(
      `It is the vault in ${dataDir} now${keyIs === 'there' ? '' : `, with its master key in ${masterKeyFile}`}.`,
    );
    for (const name of kept) say(`Kept: ${name}`);
    say(
      'What happened since is not in it: API keys that were revoked since are valid again, and certificates',
    );
    say('that were issued since are missing. Look at "vault api-key list" and "vault certificate list".');
  },
});
