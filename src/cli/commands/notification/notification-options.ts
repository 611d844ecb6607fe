/**
 * What `vault notification add …` and `update` have in common: which notifications a channel receives, and its secret
 * file.
 */
import { Secret } from '../../../base/secret.ts';
import type { ChannelTypeName } from '../../../channels/channel.ts';
import { channelTypes } from '../../../channels/channel-types.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { mergedSettings } from '../../../domain/notifications/channel-settings.ts';
import { addChannel } from '../../../domain/notifications/notification-channels.ts';
import { channelEvents } from '../../../domain/notifications/notification-events.ts';
import { createChannelInput } from '../../../domain/notifications/notification-inputs.ts';
import { onVault } from '../../runtime/with-vault.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { labelOption, labelsFrom } from '../label-options.ts';

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
  'certificate-label': {
    type: 'string',
    valueHint: 'KEY=VALUE',
    multiple: true,
    description:
      'only notify about certificates with this label, such as team=web, or another given one (default: all)',
  },
  ...labelOption,
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

export const caFile = {
  'ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust instead of the public CAs',
  },
} as const;

export const addOptions = { ...channelOption, ...choiceOptions, ...secretFile } as const;

/** Adds a channel; `open` are the settings given as options. */
export async function addFromOptions(
  type: string,
  args: Arguments<typeof addOptions> & Parameters<typeof onVault>[0],
  terminal: Terminal,
  open: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { channel: name } = args;
  const wanted = { name, type, ...choices(args) };
  const input = parseInput(createChannelInput, wanted);
  const settings = await settingsFrom(type, args['secret-file'], terminal, open);
  const signingSecret = await onVault(
    args,
    terminal,
    'create',
    (vault) => addChannel(vault, localCli, input, settings),
    async (remote) =>
      secretOf(await remote.send('POST', '/notification-channels', { ...wanted, settings: sent(settings) })),
  );
  terminal.stderr.write(`Added channel ${name}.\n  Try: vault notification test --channel ${name}\n`);
  if (signingSecret === undefined) return;
  terminal.stderr.write('Signing secret, not shown again:\n');
  terminal.stdout.write(`${signingSecret.expose()}\n`);
}

/** Merged settings as the member of a request. */
export function sent(settings: Secret): unknown {
  return JSON.parse(settings.expose().toString('utf8'));
}

/** The signing secret of a response, if the vault generated one. */
export function secretOf({ secret }: { readonly secret: string | null }): Secret<string> | undefined {
  return secret === null ? undefined : new Secret(secret);
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
  return mergedSettings(
    { type: type as ChannelTypeName, ...(plain !== undefined && { plain }) },
    secret,
    open,
  );
}

/** Event, certificate and digest options as channel input. */
export function choices(args: Arguments<typeof choiceOptions>): Record<string, unknown> {
  const { event, certificate, label, 'certificate-label': labelled, digest, 'digest-days': days } = args;
  return {
    ...(event.length > 0 && { events: eventsIn(event) }),
    ...(certificate.length > 0 && { certificates: certificate }),
    ...(labelled.length > 0 && { certificate_labels: labelsFrom(labelled) }),
    ...(label.length > 0 && { labels: labelsFrom(label) }),
    ...(digest !== undefined && { digest_at: digest === 'none' ? null : digest }),
    ...(days !== undefined && { digest_days: number('--digest-days', days) }),
  };
}

function eventsIn(words: readonly string[]): readonly string[] {
  const [only = ''] = words;
  if (words.length === 1 && only === 'none') return [];
  return words.length === 1 && only === 'all' ? channelEvents : words;
}

/** A number given as an option. Throws Misuse. */
export function number(option: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new Misuse(`${option}: "${text}" is not a number`, `Use a number, such as ${option} 30.`);
}

/** The setting in `--ca-file`. */
export async function ca(
  { 'ca-file': path }: { readonly 'ca-file': string | undefined },
  terminal: Terminal,
): Promise<{ ca?: string }> {
  return path === undefined ? {} : { ca: (await readInput(path, terminal)).toString('latin1') };
}
