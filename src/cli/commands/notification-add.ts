/** `vault notification add …`: one command per channel type, with settings as options and secrets in a file. */
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
    positional: 'or-flag',
    description: 'the name of the channel',
  },
} as const;

/** Which notifications a channel receives. */
export const choiceOptions = {
  event: {
    type: 'string',
    valueHint: 'EVENT',
    multiple: true,
    description: `an event to notify about: ${channelEvents.join(', ')}; or all or none (default: all except certificate.issued)`,
  },
  certificate: {
    type: 'string',
    valueHint: 'PATTERN',
    multiple: true,
    description: 'only notify about certificates whose names match, with * for any characters (default: all)',
  },
  digest: { type: 'string', valueHint: 'HH:MM', description: 'send a daily digest at this time, in UTC' },
  'digest-days': {
    type: 'string',
    valueHint: 'N',
    description: 'list what expires within this many days in the digest (default: 14)',
  },
} as const;

const secretFile = {
  'secret-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'a file with the secret, or with all settings as YAML or JSON; - for standard input',
  },
} as const;

const caFile = {
  'ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust instead of the public CAs',
  },
} as const;

const addOptions = { ...channelOption, ...choiceOptions, ...secretFile } as const;

const webhook = command({
  name: 'notification add webhook',
  description: 'Add a webhook that receives signed JSON',
  examples: [
    {
      does: 'Send failures to a webhook; prints its signing secret unless a file sets one',
      line: 'vault notification add webhook --channel ops --url https://hooks.example.com/vault',
    },
    {
      does: 'Send every new version of some certificates',
      line: "vault notification add webhook --channel deploy --url https://deploy.example.com/vault --event certificate.issued --certificate 'web*'",
    },
  ],
  options: {
    ...addOptions,
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'the URL to post to; put a URL that holds a token in the secret file (url: …)',
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
  description: 'Add email over SMTP, with the password in a file',
  examples: [
    {
      does: 'Email two people, with the SMTP password in a file',
      line: 'vault notification add email --channel mail --server mail.example.com:587 --from vault@example.com --to ops@example.com --to night@example.com --username vault --secret-file smtp-password.txt',
    },
    {
      does: 'Email only a daily digest',
      line: 'vault notification add email --channel digest --server mail.example.com --from vault@example.com --to team@example.com --event none --digest 07:00',
    },
  ],
  options: {
    ...addOptions,
    server: { type: 'string', valueHint: 'HOST[:PORT]', description: 'the mail server' },
    security: {
      type: 'string',
      valueHint: 'HOW',
      description: 'starttls, tls (implicit TLS) or none (default: starttls)',
    },
    from: { type: 'string', valueHint: 'ADDRESS', description: 'the sender address' },
    to: { type: 'string', valueHint: 'ADDRESS', multiple: true, description: 'a recipient address' },
    username: { type: 'string', valueHint: 'NAME', description: 'the SMTP user name' },
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
  description: 'Add a program that reads JSON on standard input',
  examples: [
    {
      does: 'Run a program for each notification',
      line: 'vault notification add exec --channel pager --command /usr/local/bin/page --argument urgent',
    },
  ],
  options: {
    ...addOptions,
    command: { type: 'string', valueHint: 'PATH', description: 'the absolute path of the program' },
    argument: {
      type: 'string',
      valueHint: 'TEXT',
      multiple: true,
      description: 'an argument of the program',
    },
    timeout: {
      type: 'string',
      valueHint: 'SECONDS',
      description: 'kill the program after this long (default: 60)',
    },
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
  'Add a webhook, email or program as a channel',
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
    const signingSecret = await addChannel(vault, localCli, input, settings);
    terminal.stderr.write(`Added channel ${name}.\n  Try: vault notification test --channel ${name}\n`);
    if (signingSecret === undefined) return;
    terminal.stderr.write('Signing secret, not shown again:\n');
    terminal.stdout.write(`${signingSecret.expose()}\n`);
  });
}

/** The settings in a secret file, merged with `open`, those given as options. */
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

/** Event, certificate and digest options as channel input. */
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
  throw new Misuse(`${option}: "${text}" is not a number`, `Use a number, such as ${option} 30.`);
}

/** `mail.example.com:587`, `[2001:db8::1]:25`, `mail.example.com` */
function server(text: string): { host: string; port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined)
    throw new Misuse(
      `--server: "${text}" is not HOST[:PORT]`,
      'Use a host and port, such as mail.example.com:587.',
    );
  return { host, ...(port !== undefined && { port: Number(port) }) };
}

async function ca(
  { 'ca-file': path }: { readonly 'ca-file': string | undefined },
  terminal: Terminal,
): Promise<{ ca?: string }> {
  return path === undefined ? {} : { ca: (await readInput(path, terminal)).toString('latin1') };
}
