/** `vault renewals list`: open, succeeded and failed renewals, newest first. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { renewalView } from '../../domain/certificates/certificate-views.ts';
import { stepsOf } from '../../domain/issuance/attempt.ts';
import { findRenewals } from '../../domain/renewals/renewals.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../terminal/count-option.ts';
import { jsonText, table } from '../terminal/output.ts';

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
    json: { type: 'boolean', description: 'print JSON' },
  },
  run: async (args, terminal) => {
    const limit = limitFrom(args.limit);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const wanted = { certificate: args.name, suggest: true, failedOnly: args.failed, limit };
      const rows = await findRenewals(vault, wanted);
      if (args.json) {
        terminal.stdout.write(jsonText(rows.map(renewalView)));
        return;
      }
      if (rows.length === 0) {
        terminal.stderr.write(args.failed ? 'No failed renewals.\n' : 'No renewals yet.\n');
        return;
      }
      terminal.stdout.write(
        table(
          ['ID', 'CERTIFICATE', 'STATUS', 'REQUESTED', 'FINISHED', 'RESULT'],
          rows.map((row) => [
            String(row.id),
            row.certificate,
            row.status,
            formatTimestamp(row.requested_at),
            row.finished_at === null ? '-' : formatTimestamp(row.finished_at),
            row.error ??
              (row.finished_at === null ? stepsOf(row).at(-1)?.text : undefined) ??
              (row.version === null ? '-' : `version ${row.version}`),
          ]),
        ),
      );
    });
  },
});

export const renewalsCommands = commandGroup('renewals', 'List renewals and their errors', { list });
