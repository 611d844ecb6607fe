/** Channel `exec`: a local program that reads the message as JSON from standard input. Never run through a shell. */
import { second } from '../base/duration.ts';
import { hookFailure } from '../net/hook-failure.ts';
import { runHook } from '../net/hook-process.ts';
import { maxProgramTimeout, type ProgramSettings, programSettings } from '../net/program-settings.ts';
import { type ChannelContext, ChannelError, type ChannelType, type Message } from './channel.ts';

export const execChannel: ChannelType<ProgramSettings> = {
  type: 'exec',
  title: 'a local program that reads the message from standard input',
  config: programSettings,
  target: ({ command }) => command[0] ?? '',
  patience: ({ timeout }) => timeout * second,
  maxPatience: maxProgramTimeout * second,
  create: (settings, context) => ({ send: (message, signal) => call(settings, context, message, signal) }),
};

async function call(
  { command, environment, timeout }: ProgramSettings,
  { world }: ChannelContext,
  message: Message,
  signal: AbortSignal,
): Promise<undefined> {
  const [program = '', ...args] = command;
  const run = {
    program,
    args,
    environment: {
      ...environment,
      VAULT_NOTIFICATION_ID: message.id,
      VAULT_NOTIFICATION_TYPE: message.type,
      VAULT_NOTIFICATION_SUBJECT: message.subject,
    },
    timeoutMs: timeout * second,
    input: `${JSON.stringify(message)}\n`,
  };
  const failure = hookFailure(run, await runHook(world, run, signal), Object.values(environment));
  if (failure !== undefined) throw new ChannelError(failure);
  return undefined;
}
