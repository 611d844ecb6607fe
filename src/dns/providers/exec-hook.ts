/** Provider `exec`: a local program, called like a hook of lego, dehydrated or certbot. Never run through a shell. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { type DnsContext, DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';
import { callHook, hookSettings } from './hook-call.ts';

const command = z
  .union([z.string(), z.array(z.string()).min(1)], {
    error: 'must be a path, or a list of a path and arguments',
  })
  .refine((words) => isAbsolute(programOf(words)), 'must begin with an absolute path (PATH is not searched)')
  .refine(
    (words) => [words].flat().every((word) => !word.includes('\0')),
    'must not contain a NUL character',
  );

const config = z
  .strictObject({
    command,
    cleanup_command: command.optional(),
    style: z.enum(['lego', 'dehydrated', 'certbot']).default('lego'),
    ...hookSettings,
  })
  .refine(({ style, cleanup_command }) => style === 'certbot' || cleanup_command === undefined, {
    path: ['cleanup_command'],
    message: 'is only for the style certbot; other styles use the same command for both',
  });

/**
 * `command`: a program, or a list of a program and its first arguments; `environment`: variables in addition to PATH,
 * HOME and LANG; `timeout` in seconds; `concurrency`: how many hooks run at once, never two for one name.
 */
export type ExecHookConfig = z.output<typeof config>;
type Verb = 'present' | 'remove';
type Call = { readonly words: readonly string[]; readonly environment?: Readonly<Record<string, string>> };

/** The program decides whether several values can coexist and whether repeated calls are harmless. */
export const execHook: DnsProviderType<ExecHookConfig> = {
  type: 'exec',
  title: 'a local program, called like a hook of lego, dehydrated or certbot',
  config,
  create: (settings, context) => ({
    concurrency: settings.concurrency,
    // The timeout of the settings.
    limitsItself: true,
    programs: [settings.command, settings.cleanup_command ?? settings.command].map(programOf),
    present: (record, signal) => call(settings, context, 'present', record, signal),
    remove: (record, signal) => call(settings, context, 'remove', record, signal),
  }),
};

async function call(
  settings: ExecHookConfig,
  context: DnsContext,
  verb: Verb,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const wanted = callFor(settings, verb, record);
  if (wanted === undefined) return;
  const { environment: secrets, timeout } = settings;
  await callHook(context, { ...wanted, secrets, timeout }, { verb, record }, signal);
}

/** The call of this style; undefined if it has none for the operation. */
function callFor(
  { style, command: main, cleanup_command: cleanup }: ExecHookConfig,
  verb: Verb,
  record: TxtRecord,
): Call | undefined {
  const { value } = record;
  const words = [main].flat();
  switch (style) {
    case 'lego':
      return { words: [...words, verb === 'present' ? 'present' : 'cleanup', `${record.name}.`, value] };
    case 'dehydrated': {
      const call = verb === 'present' ? 'deploy_challenge' : 'clean_challenge';
      // The second argument is the token file name, which only http-01 uses.
      return { words: [...words, call, domainFor(style, record), '-', value] };
    }
    case 'certbot': {
      const domain = domainFor(style, record);
      const environment = { CERTBOT_DOMAIN: domain, CERTBOT_IDENTIFIER: domain, CERTBOT_VALIDATION: value };
      if (verb === 'present') return { words, environment };
      return cleanup === undefined ? undefined : { words: [cleanup].flat(), environment };
    }
  }
}

const prefix = '_acme-challenge.';

/** These hooks receive a domain and add the prefix themselves. */
function domainFor(style: string, { name }: TxtRecord): string {
  if (name.startsWith(prefix)) return name.slice(prefix.length);
  throw new DnsProviderError(
    `a hook of the style ${style} can only create records named ${prefix}DOMAIN, not ${name}; use the style lego`,
  );
}

function programOf(words: string | readonly string[]): string {
  return [words].flat()[0] ?? '';
}
