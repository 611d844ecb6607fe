/** `vault renewals list`: open, succeeded and failed renewals, newest first. */
import { type RenewalDetailView, renewalDetailView } from '../../domain/certificates/certificate-views.ts';
import { findRenewals } from '../../domain/renewals/renewals.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { onVault } from '../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../terminal/count-option.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import { suggestingThere } from './certificate/certificates-there.ts';
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
    const { name: certificate, failed } = args;
    const renewals = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const wanted = { certificate, suggest: true, failedOnly: failed, limit };
        return (await Array.fromAsync(findRenewals(vault, wanted))).flat().map(renewalDetailView);
      },
      (remote) => {
        const query = { certificate, status: failed ? 'failed' : undefined, limit };
        return suggestingThere(remote, certificate, remote.get<RenewalDetailView[]>('/renewals', query));
      },
    );
    printList(terminal, args, renewals, {
      none: failed ? 'No failed renewals.' : 'No renewals yet.',
      json: ({ issuer: _, requested_by: __, steps: ___, held_until: ____, hold_reason: _____, ...shown }) =>
        shown,
      columns: [
        'ID',
        { title: 'CERTIFICATE', holds: 'name' },
        'STATUS',
        { title: 'REQUESTED', holds: 'time' },
        { title: 'FINISHED', holds: 'time' },
        { title: 'RESULT', holds: 'text' },
      ],
      row: (renewal) => [
        String(renewal.id),
        renewal.certificate,
        renewal.status,
        renewal.requested_at,
        renewal.finished_at ?? '-',
        resultOf(renewal, terminal.world.now()),
      ],
    });
  },
});

/** The error, the last step, what the renewal waits for, or the version. */
function resultOf(renewal: RenewalDetailView, now: number): string {
  const { error, finished_at, version, steps } = renewal;
  if (error !== null) return error;
  if (finished_at !== null) return version === null ? '-' : `version ${version}`;
  return holdText(renewal, now) ?? steps.at(-1)?.text ?? '-';
}

export const renewalsCommands = commandGroup('renewals', 'List renewals and their errors', { list });
