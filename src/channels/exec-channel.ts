/** Channel `exec`: a local program that reads the message as JSON from standard input. Never run through a shell. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { hookFailure } from '../net/hook-failure.ts';
import { runHook } from '../net/hook-process.ts';
import { type ChannelContext, ChannelError, type ChannelType, type Message } from './channel.ts';

const maxTimeout = 600;

const config = z.strictObject({
  command: z
    .array(z.string(), { error: 'is missing; it must be a list of a program and its arguments' })
    .min(1, { error: 'must be a list of a program and its arguments' })
    .refine(([program = '']) => isAbsolute(program), {
      error: 'must begin with an absolute path (PATH is not searched)',
    })
    .refine((words) => words.every((word) => !word.includes('\0')), {
      error: 'must not contain a NUL character',
    }),
  environment: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
    .default({}),
  timeout: z.int().min(1).max(maxTimeout).default(60),
});

/** `environment`: variables in addition to PATH, HOME, LANG and those describing the message; `timeout` in seconds. */
export type ExecChannelConfig = z.output<typeof config>;

export const execChannel: ChannelType<ExecChannelConfig> = {
  type: 'exec',
  title: 'a local program that reads the message from standard input',
  config,
  target: ({ command }) => command[0] ?? '',
  patience: ({ timeout }) => timeout * second,
  maxPatience: maxTimeout * second,
  create: (settings, context) => ({ send: (message, signal) => call(settings, context, message, signal) }),
};

async function call(
  { command, environment, timeout }: ExecChannelConfig,
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
