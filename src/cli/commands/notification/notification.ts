/** `vault notification …`: manages notification channels and shows their delivery log. */

import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import {
  changeChannel,
  removeChannel,
  requireChannel,
  testChannel,
  unknownChannel,
} from '../../../domain/notifications/notification-channels.ts';
import { updateChannelInput } from '../../../domain/notifications/notification-inputs.ts';
import {
  type ChannelView,
  type DeliveryView,
  viewChannels,
  viewDeliveries,
} from '../../../domain/notifications/notification-views.ts';
import { inPath, type RemoteVault } from '../../remote/remote-vault.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../../terminal/count-option.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { notificationAddCommands } from './notification-add.ts';
import {
  channelOption,
  choiceOptions,
  choices,
  secretOf,
  sent,
  settingsFrom,
} from './notification-options.ts';

const list = command({
  name: 'notification list',
  description: 'List channels with their events and last delivery',
  examples: [{ does: 'List all channels', line: 'vault notification list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const channels = await onVault(args, terminal, 'refuse', (vault) => viewChannels(vault), channelsThere);
    printList(terminal, args, channels, {
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
  },
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
    const wanted = { ...choices(args), ...((disable || enable) && { disabled: disable }) };
    const changes = parseInput(updateChannelInput, wanted);
    if (Object.keys(changes).length === 0 && file === undefined) {
      throw new Misuse('nothing to change', 'Try: vault notification update --help');
    }
    const settingsOf = async ({ type }: { readonly type: string }) =>
      file === undefined ? undefined : await settingsFrom(type, file, terminal);
    const signingSecret = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const settings = await settingsOf(await requireChannel(vault.db.reader, channel));
        return changeChannel(vault, localCli, channel, changes, settings);
      },
      async (remote) => {
        const settings = await settingsOf(await channelThere(remote, channel));
        const replaced = settings === undefined ? {} : { settings: sent(settings) };
        return secretOf(await remote.send('PATCH', channelPath(channel), { ...wanted, ...replaced }));
      },
    );
    terminal.stderr.write(`Updated channel ${channel}.\n`);
    if (signingSecret === undefined) return;
    terminal.stderr.write('New signing secret, not shown again:\n');
    terminal.stdout.write(`${signingSecret.expose()}\n`);
  },
});

const remove = command({
  name: 'notification remove',
  description: 'Remove a channel with its settings and log',
  examples: [{ does: 'Remove a channel', line: 'vault notification remove --channel pager' }],
  options: channelOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => removeChannel(vault, localCli, args.channel),
      (remote) => remote.send<void>('DELETE', channelPath(args.channel)),
    );
    terminal.stderr.write(`Removed channel ${args.channel}.\n`);
  },
});

const test = command({
  name: 'notification test',
  description: 'Send a test notification and report the result',
  examples: [{ does: 'Send a test notification', line: 'vault notification test --channel ops' }],
  options: channelOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => testChannel(vault, localCli, args.channel, stopSignal()),
      (remote) => remote.send<void>('POST', `${channelPath(args.channel)}/test`),
    );
    terminal.stdout.write(`${args.channel} accepted the test notification\n`);
  },
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
    const { channel } = args;
    const status = args.failed ? ('failed' as const) : undefined;
    const deliveries = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const channelId =
          channel === undefined ? undefined : (await requireChannel(vault.db.reader, channel)).id;
        return viewDeliveries(vault, { channelId, status, limit });
      },
      (remote) => remote.get<DeliveryView[]>('/notification-deliveries', { channel, status, limit }),
    );
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
  },
});

function channelPath(name: string): string {
  return `/notification-channels/${inPath(name)}`;
}

function channelsThere(remote: RemoteVault): Promise<ChannelView[]> {
  return remote.list<ChannelView>('/notification-channels');
}

/** The channel of this name at a server. Throws `not_found` that suggests similar names. */
async function channelThere(remote: RemoteVault, name: string): Promise<ChannelView> {
  const channels = await channelsThere(remote);
  const found = channels.find((channel) => channel.name === name);
  if (found !== undefined) return found;
  throw unknownChannel(
    name,
    channels.map((channel) => channel.name),
  );
}

export const notificationCommands = commandGroup(
  'notification',
  'Send notifications by webhook, email, program or chat',
  { add: notificationAddCommands, list, update, remove, test, log },
);
