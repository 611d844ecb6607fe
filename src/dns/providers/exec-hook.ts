/** Provider `exec`: a program of the operator's, called as lego, dehydrated or certbot call theirs. Never through a shell. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { hookFailure } from '../../net/hook-failure.ts';
import { runHook } from '../../net/hook-process.ts';
import { type DnsContext, DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';

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
    environment: z
      .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
      .default({}),
    timeout: z.int().min(1).max(3600).default(120),
    concurrency: z.int().min(1).max(32).default(4),
  })
  .refine(({ style, cleanup_command }) => style === 'certbot' || cleanup_command === undefined, {
    path: ['cleanup_command'],
    message: 'is only for the style certbot; other styles use the same command for both',
  });

/**
 * `command`: a program, or a list of it and its first arguments; `environment`: all it gets besides PATH, HOME and LANG;
 * `timeout` in seconds; `concurrency`: how many of the hooks may run at once, never two for one name.
 */
export type ExecHookConfig = z.output<typeof config>;
type Verb = 'present' | 'remove';
type Call = { readonly words: readonly string[]; readonly environment?: Readonly<Record<string, string>> };

/** Whether values coexist, and whether a second call for the same does harm, is the program's affair. */
export const execHook: DnsProviderType<ExecHookConfig> = {
  type: 'exec',
  title: 'a local program, called like a hook of lego, dehydrated or certbot',
  config,
  create: (settings, context) => ({
    concurrency: settings.concurrency,
    // The timeout of the settings.
    limitsItself: true,
    present: (record, signal) => call(settings, context, 'present', record, signal),
    remove: (record, signal) => call(settings, context, 'remove', record, signal),
  }),
};

async function call(
  settings: ExecHookConfig,
  { world, log }: DnsContext,
  verb: Verb,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const wanted = callFor(settings, verb, record);
  if (wanted === undefined) return;
  const [program = '', ...args] = wanted.words;
  const environment = { ...settings.environment, ...wanted.environment };
  const run = { program, args, environment, timeoutMs: settings.timeout * second };
  const end = await runHook(world, run, signal);
  const failure = hookFailure(run, end, Object.values(settings.environment));
  if (failure !== undefined) throw new DnsProviderError(failure);
  log.debug({ program, name: record.name }, `hook succeeded: ${verb}`);
}

/** How the style calls it; undefined where it has no call for that. */
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
      // The second is the name of a file that only http-01 has.
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

/** These hooks are told a domain and put the prefix before it themselves. */
function domainFor(style: string, { name }: TxtRecord): string {
  if (name.startsWith(prefix)) return name.slice(prefix.length);
  throw new DnsProviderError(
    `a hook of the style ${style} can only create records named ${prefix}DOMAIN, not ${name}; use the style lego`,
  );
}

function programOf(words: string | readonly string[]): string {
  return [words].flat()[0] ?? '';
}
