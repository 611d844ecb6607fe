/** `vault audit …`: lists, exports, follows and verifies the audit log without signing in. */
import { viewAuditEvents } from '../../../domain/audit/audit-log.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../../terminal/count-option.ts';
import { jsonText, table } from '../../terminal/output.ts';
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
    json: { type: 'boolean', description: 'print JSON' },
  },
  run: async (args, terminal) => {
    const filter = auditFilter(args, terminal.world.now());
    const limit = limitFrom(args.limit, 'for all events, use "vault audit export"');
    await withVault(args, terminal, 'refuse', async (vault) => {
      const events = await viewAuditEvents(vault, filter, { limit });
      if (args.json) {
        terminal.stdout.write(jsonText(events));
        return;
      }
      if (events.length === 0) {
        terminal.stderr.write('No matching events.\n');
        return;
      }
      terminal.stdout.write(
        table(
          ['ID', 'AT', 'ACTOR', 'ACTION', 'RESOURCE', 'ADDRESS', 'DETAIL'],
          events.map(({ id, at, actor, action, resource, ip, detail }) => [
            ...[String(id), at, actor, action, resource, ip ?? '-'],
            Object.keys(detail).length === 0 ? '-' : JSON.stringify(detail),
          ]),
        ),
      );
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
