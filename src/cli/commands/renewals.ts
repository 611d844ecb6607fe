/** `vault renewals list`: open, succeeded and failed renewals, newest first. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { renewalView } from '../../domain/certificates/certificate-views.ts';
import { stepsOf } from '../../domain/renewals/attempt.ts';
import { findRenewals, type NamedRenewal } from '../../domain/renewals/renewals.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../terminal/count-option.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import { holdText } from './certificate/watch-renewal.ts';

const list = command({
  name: 'renewals list',
  description: 'List renewals, newest first',
  examples: [
    { does: 'List failed renewals with the error of the CA', line: 'vault renewals list --failed' },
    { does: 'List the last renewals of one certificate', line: 'vault renewals list --name web --limit 5' },
  ],
  options: {
    failed: { type: 'boolean', description: 'only failed renewals' },
    name: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'only renewals of this certificate',
    },
    limit: limitOption,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const limit = limitFrom(args.limit);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const wanted = { certificate: args.name, suggest: true, failedOnly: args.failed, limit };
      const rows = (await Array.fromAsync(findRenewals(vault, wanted))).flat();
      printList(terminal, args, rows, {
        none: args.failed ? 'No failed renewals.' : 'No renewals yet.',
        json: renewalView,
        columns: [
          'ID',
          { title: 'CERTIFICATE', holds: 'name' },
          'STATUS',
          { title: 'REQUESTED', holds: 'time' },
          { title: 'FINISHED', holds: 'time' },
          { title: 'RESULT', holds: 'text' },
        ],
        row: (row) => [
          String(row.id),
          row.certificate,
          row.status,
          formatTimestamp(row.requested_at),
          row.finished_at === null ? '-' : formatTimestamp(row.finished_at),
          resultOf(row, terminal.world.now()),
        ],
      });
    });
  },
});

/** The error, the last step, what the renewal waits for, or the version. */
function resultOf(row: NamedRenewal, now: number): string {
  const { error, finished_at, version } = row;
  if (error !== null) return error;
  if (finished_at !== null) return version === null ? '-' : `version ${version}`;
  return holdText(row, now) ?? stepsOf(row).at(-1)?.text ?? '-';
}

export const renewalsCommands = commandGroup('renewals', 'List renewals and their errors', { list });
