/** `vault audit …`: lists, exports, follows and verifies the audit log without signing in. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { type AuditEventView, viewAuditEvents } from '../../../domain/audit/audit-log.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../../terminal/count-option.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { exportCommand } from './audit-export.ts';
import { auditFilter, auditFilterOptions } from './audit-filter.ts';
import { tailCommand } from './audit-tail.ts';
import { checkpointCommand, publicKeyCommand, verifyCommand } from './audit-verify.ts';

const list = command({
  name: 'audit list',
  description: 'List audit events, newest first',
  examples: [
    { does: 'List the last 20 events', line: 'vault audit list --limit 20' },
    {
      does: 'List the downloads of a certificate in the last week',
      line: 'vault audit list --certificate web --action certificate.download --since 7d',
    },
  ],
  options: {
    ...auditFilterOptions,
    limit: limitOption,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const filter = auditFilter(args, terminal.world.now());
    const limit = limitFrom(args.limit, 'for all events, use "vault audit export"');
    const { since, until, ...texts } = filter;
    const text = (moment: number | undefined) => (moment === undefined ? undefined : formatTimestamp(moment));
    const events = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => viewAuditEvents(vault, filter, { limit }),
      (remote) =>
        remote.get<AuditEventView[]>('/audit-events', {
          ...texts,
          since: text(since),
          until: text(until),
          limit,
        }),
    );
    printList(terminal, args, events, {
      none: 'No matching events.',
      columns: [
        'ID',
        { title: 'AT', holds: 'time' },
        { title: 'ACTOR', holds: 'name' },
        { title: 'ACTION', holds: 'name' },
        { title: 'RESOURCE', holds: 'name' },
        { title: 'ADDRESS', holds: 'name' },
        { title: 'DETAIL', holds: 'text' },
      ],
      row: ({ id, at, actor, action, resource, ip, detail }) => [
        ...[String(id), at, actor, action, resource, ip ?? '-'],
        Object.keys(detail).length === 0 ? '-' : JSON.stringify(detail),
      ],
    });
  },
});

export const auditCommands = commandGroup('audit', 'List, export and verify the audit log', {
  list,
  export: exportCommand,
  tail: tailCommand,
  checkpoint: checkpointCommand,
  verify: verifyCommand,
  'public-key': publicKeyCommand,
});
