/** `vault audit tail`: prints the newest audit events, one per line, and with --follow new ones as they happen. */
import { printable } from '../../../base/printable-text.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import {
  findAuditEvents,
  jsonLine,
  lastEventId,
  type RecordedEvent,
} from '../../../domain/audit/audit-log.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { countFrom } from '../../terminal/count-option.ts';
import { auditFilter, auditFilterOptions } from './audit-filter.ts';

const pollInterval = 500;
const pageSize = 500;

export const tailCommand = command({
  name: 'audit tail',
  description: 'Print the newest audit events, and follow new ones',
  examples: [
    { does: 'Print the last 20 events', line: 'vault audit tail --lines 20' },
    {
      does: 'Watch refused requests as they happen',
      line: 'vault audit tail --follow --action access.refuse | less',
    },
  ],
  options: {
    ...auditFilterOptions,
    lines: { type: 'string', valueHint: 'N', description: 'how many events to print first (default: 10)' },
    follow: { type: 'boolean', description: 'keep printing new events until interrupted with ^C' },
    json: { type: 'boolean', description: 'print JSON, one object per line' },
  },
  run: async (args, terminal) => {
    const { stdout, world } = terminal;
    const filter = auditFilter(args, world.now());
    const lines = countFrom('--lines', args.lines, { least: 0, usual: 10 });
    const stop = args.follow ? stopSignal() : undefined;
    await withVault(args, terminal, 'refuse', async (vault) => {
      const show = args.json ? jsonLine : line;
      let after = await lastEventId(vault);
      const before = after + 1;
      const newest = lines === 0 ? [] : await findAuditEvents(vault, filter, { before, limit: lines });
      stdout.write(newest.toReversed().map(show).join(''));
      while (stop?.aborted === false) {
        const page = { after, limit: pageSize };
        const events = await findAuditEvents(vault, filter, page, 'oldest first');
        stdout.write(events.map(show).join(''));
        after = events.at(-1)?.id ?? after;
        if (events.length < pageSize) await world.sleep(pollInterval, stop);
      }
    });
  },
});

function line({ at, actor, action, resource, ip, detail }: RecordedEvent): string {
  const words = [formatTimestamp(at), actor, action, resource, ...(ip === null ? [] : [`from ${ip}`])];
  return `${printable([...words, ...(detail === '{}' ? [] : [detail])].join('  '))}\n`;
}
