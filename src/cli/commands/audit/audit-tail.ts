/** `vault audit tail`: the newest audit events, one a line, and the next ones as they happen. */
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
import { printable } from '../../terminal/output.ts';
import { auditFilter, auditFilterOptions } from './audit-filter.ts';

const lookAgainAfter = 500;
const eventsAtOnce = 500;

export const tailCommand = command({
  name: 'audit tail',
  description: 'show the newest audit events, oldest of them first, and with --follow what happens next',
  examples: [
    { does: 'The last things that happened, one a line', line: 'vault audit tail --lines 20' },
    { does: 'Refusals as they happen', line: 'vault audit tail --follow --action access.refuse | less' },
  ],
  options: {
    ...auditFilterOptions,
    lines: { type: 'string', valueHint: 'N', description: 'how many to begin with (default: 10)' },
    follow: { type: 'boolean', description: 'go on until it is stopped, with ^C' },
    json: { type: 'boolean', description: 'print one JSON object a line, for programs' },
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
        const page = { after, limit: eventsAtOnce };
        const events = await findAuditEvents(vault, filter, page, 'oldest first');
        stdout.write(events.map(show).join(''));
        after = events.at(-1)?.id ?? after;
        if (events.length < eventsAtOnce) await world.sleep(lookAgainAfter, stop);
      }
    });
  },
});

function line({ at, actor, action, resource, ip, detail }: RecordedEvent): string {
  const words = [formatTimestamp(at), actor, action, resource, ...(ip === null ? [] : [`from ${ip}`])];
  return `${printable([...words, ...(detail === '{}' ? [] : [detail])].join('  '))}\n`;
}
