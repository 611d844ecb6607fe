/** `vault notification …`: manages notification channels and shows their delivery log. */

import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import {
  changeChannel,
  removeChannel,
  requireChannel,
  testChannel,
} from '../../../domain/notifications/notification-channels.ts';
import { updateChannelInput } from '../../../domain/notifications/notification-inputs.ts';
import { viewChannels, viewDeliveries } from '../../../domain/notifications/notification-views.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../../terminal/count-option.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { notificationAddCommands } from './notification-add.ts';
import { channelOption, choiceOptions, choices, settingsFrom } from './notification-options.ts';

const list = command({
  name: 'notification list',
  description: 'List channels with their events and last delivery',
  examples: [{ does: 'List all channels', line: 'vault notification list' }],
  options: jsonOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      printList(terminal, args, await viewChannels(vault), {
        none: 'No notification channels yet.\n  Try: vault notification add --help',
        columns: [
          { title: 'CHANNEL', holds: 'name' },
          'TYPE',
          { title: 'TO', holds: 'text' },
          { title: 'EVENTS', holds: 'list' },
          { title: 'CERTIFICATES', holds: 'list' },
          'DIGEST',
          'LAST',
        ],
        row: (one) => [
          one.name,
          one.type,
          one.target,
          one.events.length === 0 ? '-' : one.events,
          one.certificates.length === 0 ? '*' : one.certificates,
          one.digest_at ?? '-',
          one.disabled_at === null ? (one.last_delivery?.status ?? '-') : 'disabled',
        ],
      });
    }),
});

const update = command({
  name: 'notification update',
  description: 'Change a channel; options not given stay the same',
  examples: [
    {
      does: 'Notify about all events, including new versions',
      line: 'vault notification update --channel ops --event all',
    },
    { does: 'Pause a channel', line: 'vault notification update --channel ops --disable' },
  ],
  options: {
    ...channelOption,
    ...choiceOptions,
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a YAML or JSON file that replaces all settings of the channel; - for standard input',
    },
    disable: { type: 'boolean', description: 'stop sending notifications to this channel' },
    enable: { type: 'boolean', description: 'send notifications to this channel again' },
  },
  run: async (args, terminal) => {
    const { channel, disable, enable, 'secret-file': file } = args;
    if (disable && enable) throw new Misuse('--disable and --enable exclude each other', 'Use one of them.');
    const changes = parseInput(updateChannelInput, {
      ...choices(args),
      ...((disable || enable) && { disabled: disable }),
    });
    if (Object.keys(changes).length === 0 && file === undefined) {
      throw new Misuse('nothing to change', 'Try: vault notification update --help');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const { type } = await requireChannel(vault.db.reader, channel);
      const settings = file === undefined ? undefined : await settingsFrom(type, file, terminal);
      const signingSecret = await changeChannel(vault, localCli, channel, changes, settings);
      terminal.stderr.write(`Updated channel ${channel}.\n`);
      if (signingSecret === undefined) return;
      terminal.stderr.write('New signing secret, not shown again:\n');
      terminal.stdout.write(`${signingSecret.expose()}\n`);
    });
  },
});

const remove = command({
  name: 'notification remove',
  description: 'Remove a channel with its settings and log',
  examples: [{ does: 'Remove a channel', line: 'vault notification remove --channel pager' }],
  options: channelOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await removeChannel(vault, localCli, args.channel);
      terminal.stderr.write(`Removed channel ${args.channel}.\n`);
    }),
});

const test = command({
  name: 'notification test',
  description: 'Send a test notification and report the result',
  examples: [{ does: 'Send a test notification', line: 'vault notification test --channel ops' }],
  options: channelOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await testChannel(vault, localCli, args.channel, stopSignal());
      terminal.stdout.write(`${args.channel} accepted the test notification\n`);
    }),
});

const log = command({
  name: 'notification log',
  description: 'List deliveries and failures, newest first',
  examples: [{ does: 'List failed deliveries', line: 'vault notification log --failed' }],
  options: {
    channel: { type: 'string', valueHint: 'NAME', description: 'only deliveries to this channel' },
    failed: { type: 'boolean', description: 'only failed deliveries' },
    limit: limitOption,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const limit = limitFrom(args.limit);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const channelId =
        args.channel === undefined ? undefined : (await requireChannel(vault.db.reader, args.channel)).id;
      const status = args.failed ? ('failed' as const) : undefined;
      const deliveries = await viewDeliveries(vault, { channelId, status, limit });
      printList(terminal, args, deliveries, {
        none: args.failed ? 'No failed deliveries.' : 'No deliveries yet.',
        columns: [
          { title: 'QUEUED', holds: 'time' },
          { title: 'CHANNEL', holds: 'name' },
          'EVENT',
          { title: 'ABOUT', holds: 'name' },
          'STATUS',
          'ATTEMPTS',
          { title: 'LAST ERROR', holds: 'text' },
        ],
        row: (one) => [
          one.queued_at,
          one.channel,
          one.event,
          one.about ?? '-',
          one.status,
          String(one.attempts),
          one.error ?? '-',
        ],
      });
    });
  },
});

export const notificationCommands = commandGroup(
  'notification',
  'Send notifications by webhook, email, program or chat',
  { add: notificationAddCommands, list, update, remove, test, log },
);
