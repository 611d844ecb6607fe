/** Provider `lexicon`: the program of that name (PyPI dns-lexicon), which knows the APIs of about 90 DNS providers. */
import { z } from 'zod';
import type { DnsContext, DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { callHook, hookSettings, programPath } from './hook-call.ts';

const config = z.strictObject({
  provider: z.string().regex(/^[a-z0-9]{1,40}$/, 'must be a name from "lexicon --help", such as gandi'),
  program: programPath.default('/usr/bin/lexicon'),
  ...hookSettings,
});

/**
 * `environment` has the credentials: `LEXICON_`, the provider and the option in capitals, as in
 * LEXICON_GANDI_AUTH_TOKEN.
 */
export type LexiconConfig = z.output<typeof config>;

export const lexicon: DnsProviderType<LexiconConfig> = {
  type: 'lexicon',
  title: 'the program lexicon, for about 90 DNS providers',
  config,
  create: (settings, context) => ({
    concurrency: settings.concurrency,
    // The timeout of the settings.
    limitsItself: true,
    programs: [settings.program],
    present: (record, signal) => call(settings, context, 'create', record, signal),
    remove: (record, signal) => call(settings, context, 'delete', record, signal),
  }),
};

function call(
  { provider, program, environment: secrets, timeout }: LexiconConfig,
  context: DnsContext,
  verb: 'create' | 'delete',
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const { zone, name, value } = record;
  // Without --delegated, lexicon takes the registered domain for the zone.
  const words = [
    program,
    '--delegated',
    zone,
    provider,
    verb,
    zone,
    'TXT',
    '--name',
    name,
    '--content',
    value,
  ];
  return callHook(context, { words, secrets, timeout }, { verb, record }, signal);
}
