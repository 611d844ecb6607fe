/** `vault master-key remove`: refuses a key that scheduled backups need, and asks before it removes the file. */
import { printable } from '../../../base/printable-text.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { backupsNeeding, lossOf, refuseNeededKey } from '../../../domain/backup/backup-keys.ts';
import { removeMasterKey } from '../../../domain/master-key/master-key-status.ts';
import { command } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { allSettingsInUse } from '../../settings/recorded-settings.ts';
import { withKeyFiles } from './master-key-access.ts';

export const removeCommand = command({
  name: 'master-key remove',
  description: 'Remove the file of a master key that is no longer used',
  examples: [
    {
      does: 'Remove an unused key, without a question',
      line: 'vault master-key remove --id 0123456789abcdef --yes',
    },
  ],
  options: {
    id: { type: 'string', valueHint: 'ID', required: true, description: 'the key id, as in the status' },
    force: { type: 'boolean', description: 'remove it even if scheduled backups need it' },
    ...yesOption,
  },
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, settings) => {
      const all = [settings, ...(await allSettingsInUse(vault, settings))];
      const directories = new Set(all.flatMap(({ backups }) => backups?.directory ?? []));
      const paths = await removeMasterKey(vault, localCli, settings.masterKeyFile, args.id, async () => {
        const lost = [...directories].flatMap((directory) => lostBackups(directory, args) ?? []);
        await confirmLoss(terminal, args, {
          question: `Remove master key ${args.id}? Only a copy of the key opens backups that need it.`,
          isPermanent: true,
        });
        for (const loss of lost)
          terminal.stderr.write(`Lost: ${printable(loss)} without a copy of the key.\n`);
      });
      for (const path of paths) terminal.stderr.write(`Removed: ${path}\n`);
      terminal.stderr.write('To restore backups that need this key, you need a copy of it.\n');
    }),
});

/**
 * Scheduled backups that cannot be restored without the key. Throws OperatorError if there are any, unless `force` is
 * set.
 */
function lostBackups(
  directory: string,
  { id, force }: { readonly id: string; readonly force: boolean },
): string | undefined {
  if (!force) refuseNeededKey(directory, id);
  try {
    const needing = backupsNeeding(directory, id);
    return needing.length === 0 ? undefined : lossOf(needing);
  } catch {
    return `backups in ${directory}, which cannot be read, may need the key and cannot be restored`;
  }
}
