/** `vault notification add …` for chat and paging services: a table of what each takes beside its secret file. */
import { command, type Example, type VaultCommand } from '../../runtime/command.ts';
import type { OptionSpec } from '../../terminal/arguments.ts';
import { addFromOptions, addOptions, ca, caFile, number } from './notification-options.ts';

/** Options that become settings of the same name. */
type Setting = 'url' | 'topic' | 'chat' | 'thread';

type Service = {
  readonly type: string;
  readonly description: string;
  readonly settings: Readonly<Partial<Record<Setting, OptionSpec>>>;
  readonly example: Example;
};

function text(valueHint: string, description: string): OptionSpec {
  return { type: 'string', valueHint, description };
}

const services: readonly Service[] = [
  {
    type: 'slack',
    description: 'Add a Slack channel, with its webhook URL in a file',
    settings: {},
    example: {
      does: 'Post to Slack',
      line: 'vault notification add slack --channel ops --secret-file slack-url.txt',
    },
  },
  {
    type: 'teams',
    description: 'Add a Teams channel, with its workflow URL in a file',
    settings: {},
    example: {
      does: 'Post to Microsoft Teams',
      line: 'vault notification add teams --channel ops --secret-file teams-url.txt',
    },
  },
  {
    type: 'discord',
    description: 'Add a Discord channel, with its webhook URL in a file',
    settings: {},
    example: {
      does: 'Post to Discord',
      line: 'vault notification add discord --channel ops --secret-file discord-url.txt',
    },
  },
  {
    type: 'telegram',
    description: 'Add a Telegram chat, with the bot token in a file',
    settings: {
      chat: text('ID', 'the id of the chat, such as -1001234567890, or @channel'),
      thread: text('N', 'the topic of a group with topics'),
      url: text('URL', 'a Bot API server of your own (default: https://api.telegram.org)'),
    },
    example: {
      does: 'Post to a Telegram group',
      line: 'vault notification add telegram --channel ops --chat=-1001234567890 --secret-file telegram-token.txt',
    },
  },
  {
    type: 'ntfy',
    description: 'Add an ntfy topic, with its access token in a file',
    settings: {
      topic: text('TOPIC', 'the topic; put a topic that no one may guess in the secret file (topic: …)'),
      url: text('URL', 'the server (default: https://ntfy.sh)'),
    },
    example: {
      does: 'Push over an ntfy server',
      line: 'vault notification add ntfy --channel ops --url https://ntfy.example.com --topic vault --secret-file ntfy-token.txt',
    },
  },
  {
    type: 'gotify',
    description: 'Add a Gotify application, with its token in a file',
    settings: { url: text('URL', 'the server') },
    example: {
      does: 'Push over a Gotify server',
      line: 'vault notification add gotify --channel ops --url https://gotify.example.com --secret-file gotify-token.txt',
    },
  },
  {
    type: 'pagerduty',
    description: 'Add a PagerDuty service, with its key in a file',
    settings: {
      url: text('URL', 'https://events.eu.pagerduty.com in the EU (default: https://events.pagerduty.com)'),
    },
    example: {
      does: 'Page with PagerDuty',
      line: 'vault notification add pagerduty --channel oncall --secret-file pagerduty-key.txt',
    },
  },
  {
    type: 'opsgenie',
    description: 'Add an Opsgenie integration, with its key in a file',
    settings: {
      url: text('URL', 'https://api.eu.opsgenie.com in the EU (default: https://api.opsgenie.com)'),
    },
    example: {
      does: 'Page with Opsgenie',
      line: 'vault notification add opsgenie --channel oncall --secret-file opsgenie-key.txt',
    },
  },
];

/** By type, in the order of the help text. */
export const chatCommands: Readonly<Record<string, VaultCommand>> = Object.fromEntries(
  services.map((service) => [service.type, addCommand(service)]),
);

function addCommand({ type, description, settings, example }: Service): VaultCommand {
  // Undefined for services without them; TypeScript then knows the names.
  const own = settings as Readonly<Record<Setting, { type: 'string'; description: string }>>;
  return command({
    name: `notification add ${type}`,
    description,
    examples: [example],
    options: { ...addOptions, ...own, ...caFile },
    run: async (args, terminal) => {
      const { url, topic, chat, thread } = args;
      await addFromOptions(type, args, terminal, {
        ...(url !== undefined && { url }),
        ...(topic !== undefined && { topic }),
        ...(chat !== undefined && { chat }),
        ...(thread !== undefined && { thread: number('--thread', thread) }),
        ...(await ca(args, terminal)),
      });
    },
  });
}
