/** `vault notification …`: who is told what happens, whether that works, and what was told. */

import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import {
  changeChannel,
  removeChannel,
  requireChannel,
  testChannel,
} from '../../domain/notifications/notification-channels.ts';
import { updateChannelInput } from '../../domain/notifications/notification-inputs.ts';
import { viewChannels, viewDeliveries } from '../../domain/notifications/notification-views.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { withVault } from '../runtime/with-vault.ts';
import { limitFrom, limitOption } from '../terminal/count-option.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonText, table } from '../terminal/output.ts';
import {
  channelOption,
  choiceOptions,
  choices,
  notificationAddCommands,
  settingsFrom,
} from './notification-add.ts';

const json = { type: 'boolean', description: 'print JSON, for programs' } as const;

const list = command({
  name: 'notification list',
  description: 'list the channels, what they are told, and whether that works',
  examples: [{ does: 'See who is told what', line: 'vault notification list' }],
  options: { json },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const channels = await viewChannels(vault);
      if (args.json) {
        terminal.stdout.write(jsonText(channels));
        return;
      }
      if (channels.length === 0) {
        terminal.stderr.write('There are no channels yet. Add one with "vault notification add".\n');
        return;
      }
      const cells = channels.map((one) => [
        one.name,
        one.type,
        one.target,
        one.events.join(' ') || '-',
        one.certificates.join(' ') || '*',
        one.digest_at ?? '-',
        one.disabled_at === null ? (one.last_delivery?.status ?? '-') : 'disabled',
      ]);
      terminal.stdout.write(
        table(['CHANNEL', 'TYPE', 'TO', 'EVENTS', 'CERTIFICATES', 'DIGEST', 'LAST'], cells),
      );
    }),
});

const update = command({
  name: 'notification update',
  description: 'change a channel; what is not named stays, and "none" takes a digest back',
  examples: [
    { does: 'Have each new version told, too', line: 'vault notification update --channel ops --event all' },
    { does: 'Tell it nothing for a while', line: 'vault notification update --channel ops --disable' },
  ],
  options: {
    ...channelOption,
    ...choiceOptions,
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'all its settings anew, as YAML or JSON; - is standard input',
    },
    disable: { type: 'boolean', description: 'tell it nothing any more' },
    enable: { type: 'boolean', description: 'tell it again' },
  },
  run: async (args, terminal) => {
    const { channel, disable, enable, 'secret-file': file } = args;
    if (disable && enable) throw new Misuse('--disable and --enable are opposites', 'Give one of them.');
    const changes = parseInput(updateChannelInput, {
      ...choices(args),
      ...((disable || enable) && { disabled: disable }),
    });
    if (Object.keys(changes).length === 0 && file === undefined) {
      throw new Misuse('there is nothing to change', 'See "vault notification update --help".');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const { type } = await requireChannel(vault.db.reader, channel);
      const settings = file === undefined ? undefined : await settingsFrom(type, file, terminal);
      const made = await changeChannel(vault, localCli, channel, changes, settings);
      terminal.stderr.write(`Channel ${channel} is changed.\n`);
      if (made === undefined) return;
      terminal.stderr.write('Its new signing secret, which is shown this once:\n');
      terminal.stdout.write(`${made.expose()}\n`);
    });
  },
});

const remove = command({
  name: 'notification remove',
  description: 'remove a channel with its settings and its log',
  examples: [
    { does: 'Remove one with its settings and its log', line: 'vault notification remove --channel pager' },
  ],
  options: channelOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await removeChannel(vault, localCli, args.channel);
      terminal.stderr.write(`Channel ${args.channel} is removed.\n`);
    }),
});

const test = command({
  name: 'notification test',
  description: 'send a test message now, and see whether it is taken',
  examples: [{ does: 'Send a test message now', line: 'vault notification test --channel ops' }],
  options: channelOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await testChannel(vault, localCli, args.channel, stopSignal());
      terminal.stdout.write(`${args.channel} has taken the test message\n`);
    }),
});

const log = command({
  name: 'notification log',
  description: 'list what was told, and what could not be, newest first',
  examples: [{ does: 'See what could not be told', line: 'vault notification log --failed' }],
  options: {
    channel: { type: 'string', valueHint: 'NAME', description: 'only of this channel' },
    failed: { type: 'boolean', description: 'only what was given up' },
    limit: limitOption,
    json,
  },
  run: async (args, terminal) => {
    const limit = limitFrom(args.limit);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const channelId =
        args.channel === undefined ? undefined : (await requireChannel(vault.db.reader, args.channel)).id;
      const status = args.failed ? ('failed' as const) : undefined;
      const deliveries = await viewDeliveries(vault, { channelId, status, limit });
      if (args.json) {
        terminal.stdout.write(jsonText(deliveries));
        return;
      }
      if (deliveries.length === 0) {
        terminal.stderr.write(args.failed ? 'Nothing was given up.\n' : 'Nothing was told yet.\n');
        return;
      }
      const cells = deliveries.map((one) => [
        one.queued_at,
        one.channel,
        one.event,
        one.about ?? '-',
        one.status,
        String(one.attempts),
        one.error ?? '-',
      ]);
      terminal.stdout.write(
        table(['QUEUED', 'CHANNEL', 'EVENT', 'ABOUT', 'STATUS', 'ATTEMPTS', 'LAST ERROR'], cells),
      );
    });
  },
});

export const notificationCommands = commandGroup(
  'notification',
  'tell people and programs what happens: webhooks, e-mail, programs',
  { add: notificationAddCommands, list, update, remove, test, log },
);
