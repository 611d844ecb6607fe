/** `vault notification add …`: one command for each kind of channel, with what it needs as options and its secrets in a file. */
import { Secret } from '../../base/secret.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import { mergedSettings } from '../../domain/notifications/channel-settings.ts';
import { addChannel } from '../../domain/notifications/notification-channels.ts';
import { channelEvents } from '../../domain/notifications/notification-events.ts';
import { createChannelInput } from '../../domain/notifications/notification-inputs.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import type { Arguments } from '../terminal/arguments.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const channelOption = {
  channel: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    description: 'how the vault calls the channel',
  },
} as const;

/** What a channel is told, when it is added and when it is changed. */
export const choiceOptions = {
  event: {
    type: 'string',
    valueHint: 'EVENT',
    multiple: true,
    description: `${channelEvents.join(', ')}; all, none (default: all but certificate.issued)`,
  },
  certificate: {
    type: 'string',
    valueHint: 'PATTERN',
    multiple: true,
    description: 'only of certificates whose names fit, with * for any characters (default: all)',
  },
  digest: { type: 'string', valueHint: 'HH:MM', description: 'also a daily digest at this time, in UTC' },
  'digest-days': {
    type: 'string',
    valueHint: 'N',
    description: 'of what ends within so many days the digest tells (default: 14)',
  },
} as const;

const secretFile = {
  'secret-file': {
    type: 'string',
    valueHint: 'FILE',
    description:
      'a file with what must not be an argument, or with all settings as YAML or JSON; - is standard input',
  },
} as const;

const caFile = {
  'ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust in place of the public ones',
  },
} as const;

const addOptions = { ...channelOption, ...choiceOptions, ...secretFile } as const;

const webhook = command({
  name: 'notification add webhook',
  description:
    'add a webhook: JSON is posted to it, signed; its signing secret is printed unless a file brings one',
  examples: [
    {
      does: 'Tell a program of yours what goes wrong',
      line: 'vault notification add webhook --channel ops --url https://hooks.example.com/vault',
    },
    {
      does: 'Only of some certificates, and each new version',
      line: "vault notification add webhook --channel deploy --url https://deploy.example.com/vault --event certificate.issued --certificate 'web*'",
    },
  ],
  options: {
    ...addOptions,
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'where to post to; one that holds a token belongs into the secret file (url: …)',
    },
    ...caFile,
  },
  run: async (args, terminal) =>
    add('webhook', args, terminal, {
      ...(args.url !== undefined && { url: args.url }),
      ...(await ca(args, terminal)),
    }),
});

const email = command({
  name: 'notification add email',
  description: 'add e-mail over SMTP; the password comes from the secret file',
  examples: [
    {
      does: 'Write to two people, with a password in a file',
      line: 'vault notification add email --channel mail --server mail.example.com:587 --from vault@example.com --to ops@example.com --to night@example.com --username vault --secret-file smtp-password.txt',
    },
    {
      does: 'Only a digest, every morning',
      line: 'vault notification add email --channel digest --server mail.example.com --from vault@example.com --to team@example.com --event none --digest 07:00',
    },
  ],
  options: {
    ...addOptions,
    server: { type: 'string', valueHint: 'HOST[:PORT]', description: 'the mail server' },
    security: {
      type: 'string',
      valueHint: 'HOW',
      description: 'starttls, tls (from the first byte) or none (default: starttls)',
    },
    from: { type: 'string', valueHint: 'ADDRESS', description: 'who writes' },
    to: { type: 'string', valueHint: 'ADDRESS', multiple: true, description: 'who is written to' },
    username: { type: 'string', valueHint: 'NAME', description: 'how to sign in' },
    ...caFile,
  },
  run: async (args, terminal) => {
    const { security, from, to, username } = args;
    await add('email', args, terminal, {
      ...(args.server !== undefined && server(args.server)),
      ...(security !== undefined && { security }),
      ...(from !== undefined && { from }),
      ...(to.length > 0 && { to }),
      ...(username !== undefined && { username }),
      ...(await ca(args, terminal)),
    });
  },
});

const exec = command({
  name: 'notification add exec',
  description: 'add a program, which reads each message as JSON on its standard input',
  examples: [
    {
      does: 'Start a program of your own',
      line: 'vault notification add exec --channel pager --command /usr/local/bin/page --argument urgent',
    },
  ],
  options: {
    ...addOptions,
    command: { type: 'string', valueHint: 'PATH', description: 'the program, by its absolute path' },
    argument: { type: 'string', valueHint: 'TEXT', multiple: true, description: 'an argument for it' },
    timeout: { type: 'string', valueHint: 'SECONDS', description: 'how long it may take (default: 60)' },
  },
  run: async (args, terminal) => {
    const { command: program, argument, timeout } = args;
    await add('exec', args, terminal, {
      ...(program !== undefined && { command: [program, ...argument] }),
      ...(timeout !== undefined && { timeout: number('--timeout', timeout) }),
    });
  },
});

export const notificationAddCommands = commandGroup(
  'notification add',
  'add a channel: a webhook, e-mail, or a program',
  { webhook, email, exec },
);

async function add(
  type: string,
  args: Arguments<typeof addOptions> & Parameters<typeof withVault>[0],
  terminal: Terminal,
  open: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { channel: name } = args;
  const input = parseInput(createChannelInput, { name, type, ...choices(args) });
  const settings = await settingsFrom(type, args['secret-file'], terminal, open);
  await withVault(args, terminal, 'create', async (vault) => {
    const made = await addChannel(vault, localCli, input, settings);
    terminal.stderr.write(`Channel ${name} is added. Try it:\n  vault notification test --channel ${name}\n`);
    if (made === undefined) return;
    terminal.stderr.write('Its signing secret, which is shown this once:\n');
    terminal.stdout.write(`${made.expose()}\n`);
  });
}

/** The settings of a secret file, with those that were given in the open. */
export async function settingsFrom(
  type: string,
  file: string | undefined,
  terminal: Terminal,
  open: Readonly<Record<string, unknown>> = {},
): Promise<Secret> {
  const secret = new Secret(file === undefined ? Buffer.from('{}') : await readInput(file, terminal));
  const { plain } = channelTypes.get(type) ?? {};
  return mergedSettings({ type: type as 'webhook', ...(plain !== undefined && { plain }) }, secret, open);
}

/** What the channel is told, as the inputs of channels have it. */
export function choices(args: Arguments<typeof choiceOptions>): Record<string, unknown> {
  const { event, certificate, digest, 'digest-days': days } = args;
  return {
    ...(event.length > 0 && { events: eventsIn(event) }),
    ...(certificate.length > 0 && { certificates: certificate }),
    ...(digest !== undefined && { digest_at: digest === 'none' ? null : digest }),
    ...(days !== undefined && { digest_days: number('--digest-days', days) }),
  };
}

function eventsIn(words: readonly string[]): readonly string[] {
  const [only = ''] = words;
  if (words.length === 1 && only === 'none') return [];
  return words.length === 1 && only === 'all' ? channelEvents : words;
}

function number(option: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new Misuse(`${option} "${text}" is not a number`, `Write ${option} 30.`);
}

/** `mail.example.com:587`, `[2001:db8::1]:25`, `mail.example.com` */
function server(text: string): { host: string; port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined)
    throw new Misuse(`--server "${text}" is no host`, 'Write --server mail.example.com:587.');
  return { host, ...(port !== undefined && { port: Number(port) }) };
}

async function ca(
  { 'ca-file': path }: { readonly 'ca-file': string | undefined },
  terminal: Terminal,
): Promise<{ ca?: string }> {
  return path === undefined ? {} : { ca: (await readInput(path, terminal)).toString('latin1') };
}
