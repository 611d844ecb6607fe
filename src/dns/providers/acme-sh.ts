/**
 * Provider `acme-sh`: a script of acme.sh's dnsapi. The scripts need functions of acme.sh, which is therefore installed
 * beside the vault; it is read for its functions, and keeps nothing: the vault has the credentials.
 */
import { basename, dirname, isAbsolute, join } from 'node:path';
import { z } from 'zod';
import type { DnsContext, DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { callHook, hookSettings, programPath } from './hook-call.ts';

const config = z.strictObject({
  script: z
    .string()
    .refine(
      (path) =>
        /^dns_[A-Za-z0-9_]{1,60}\.sh$/.test(basename(path)) && (isAbsolute(path) || !path.includes('/')),
      'must be a script of dnsapi such as dns_gandi_livedns.sh, or an absolute path',
    )
    .refine((path) => !path.includes('\0'), 'must not contain a NUL character'),
  program: programPath,
  ...hookSettings,
});

/** `program` is the path of acme.sh; `environment` has the variables that the head of the script names. */
export type AcmeShConfig = z.output<typeof config>;

export const acmeSh: DnsProviderType<AcmeShConfig> = {
  type: 'acme-sh',
  title: 'a script of acme.sh, for about 180 DNS providers',
  config,
  create: (settings, context) => ({
    concurrency: settings.concurrency,
    // The timeout of the settings.
    limitsItself: true,
    programs: [settings.program, scriptOf(settings)],
    present: (record, signal) => call(settings, context, 'add', record, signal),
    remove: (record, signal) => call(settings, context, 'rm', record, signal),
  }),
};

/**
 * Reads acme.sh, which without arguments only prints its help, then the script, and calls its function. What acme.sh
 * would write to its configuration, credentials among it, is dropped; its working directory is a temporary one.
 */
const shellScript = `
vault_acme_sh=$1 vault_script=$2 vault_function=$3 vault_name=$4 vault_value=$5
LE_WORKING_DIR=$(mktemp -d) || exit 1
LE_CONFIG_HOME=$LE_WORKING_DIR
export LE_WORKING_DIR LE_CONFIG_HOME
trap 'rm -rf "$LE_WORKING_DIR"' EXIT
trap 'exit 143' TERM
set --
. "$vault_acme_sh" >/dev/null
for vault_word in _saveaccountconf _saveaccountconf_mutable _clearaccountconf _clearaccountconf_mutable \\
  _readaccountconf _readaccountconf_mutable _savedomainconf _cleardomainconf _readdomainconf; do
  eval "$vault_word() { :; }"
done
. "$vault_script"
"$vault_function" "$vault_name" "$vault_value"
`;

function call(
  settings: AcmeShConfig,
  context: DnsContext,
  verb: 'add' | 'rm',
  record: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const { script, program, environment: secrets, timeout } = settings;
  const path = scriptOf(settings);
  const called = `${basename(script, '.sh')}_${verb}`;
  const words = ['/bin/sh', '-c', shellScript, 'acme-sh', program, path, called, record.name, record.value];
  return callHook(context, { words, scripts: [program, path], secrets, timeout }, { verb, record }, signal);
}

function scriptOf({ script, program }: AcmeShConfig): string {
  return isAbsolute(script) ? script : join(dirname(program), 'dnsapi', script);
}
