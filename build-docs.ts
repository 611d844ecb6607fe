/**
 * The pages of docs/reference that come from the sources: settings, commands, metrics. `node build-docs.ts` writes
 * them; test/docs/reference.test.ts compares them.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandDef } from 'citty';
import { root } from './src/cli/commands/run.ts';
import { type ListedCommand, listCommands } from './src/cli/completion/command-list.ts';
import { settingVariables } from './src/cli/settings/setting-variables.ts';
import { commonOptions, serveOptions } from './src/cli/settings/settings.ts';
import type { OptionSpec } from './src/cli/terminal/arguments.ts';
import { type MetricFamily, metricFamilies } from './src/http/metrics/metric-families.ts';
import { processMetrics } from './src/http/metrics/process-metrics.ts';

/** Where a setting is explained, beside its row. */
const guides: Readonly<Record<string, string>> = {
  'data-dir': 'files.md',
  'master-key-file': 'files.md',
  'master-key-passphrase-file': '../how-to/seal-master-key.md',
  'master-key-command': '../how-to/master-key-stores.md',
  'trusted-proxies': '../how-to/reverse-proxy.md',
  'max-connections': 'limits.md',
  'api-key-rate': 'limits.md',
  'acme-http-listen': '../how-to/acme.md#challenges',
  'acme-tls-listen': '../how-to/acme.md#challenges',
  resolver: '../how-to/dns.md#split-horizon',
  'allow-outbound': '../how-to/allow-outbound.md',
  'acme-validation-allow': '../how-to/acme-validation.md#choose-where-the-vault-validates',
  'acme-validation-forbid': '../how-to/acme-validation.md#choose-where-the-vault-validates',
  'endpoint-allow': '../how-to/served-certificates.md#choose-what-the-vault-may-connect-to',
  'endpoint-forbid': '../how-to/served-certificates.md#choose-what-the-vault-may-connect-to',
  'acme-caa-identity': '../how-to/acme-validation.md#respect-caa-records',
  'acme-terms-of-service': '../explanation/acme-server.md#rules',
  'acme-drafts': '../how-to/acme.md#challenges',
  'tls-certificate': '../how-to/https.md',
  'tls-cert-file': '../how-to/https.md#use-certificate-files-from-another-program',
  'tls-key-file': '../how-to/https.md#use-certificate-files-from-another-program',
  'metrics-listen': '../how-to/metrics.md',
  'metrics-token-file': '../how-to/metrics.md',
  'insecure-http': '../how-to/https.md',
  'no-create': '../how-to/systemd.md#protect-against-a-missing-disk',
  'backup-dir': '../how-to/backup.md#schedule-backups',
  'backup-every': '../how-to/backup.md#schedule-backups',
  'backup-keep': '../how-to/backup.md#schedule-backups',
  'keep-deleted': '../how-to/restore.md#restore-a-deleted-certificate',
  'audit-retention': '../how-to/audit-collector.md#set-a-retention-period',
  'audit-file': '../how-to/audit-collector.md',
  'audit-syslog': '../how-to/audit-collector.md',
  'audit-syslog-ca': '../how-to/audit-collector.md',
  'low-disk-space': '../how-to/audit.md',
};

const generated = '<!-- Written by "node build-docs.ts". Change the source instead. -->';

/** By path in the repository. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const commands = await listCommands(root as CommandDef);
  const { families } = await processMetrics();
  return new Map([
    ['docs/reference/settings.md', settingsPage()],
    ['docs/reference/cli.md', commandsPage(commands)],
    ['docs/reference/metrics.md', metricsPage(families)],
  ]);
}

function settingsPage(): string {
  const row = ([name, spec]: [string, OptionSpec]) => {
    const key = name.replaceAll('-', '_');
    const [, text = spec.description, usual = ''] =
      /^(.*?) \(default: ([^()]*)\)$/.exec(spec.description) ?? [];
    const guide = guides[name] === undefined ? '' : ` ([more](${guides[name]}))`;
    return tableRow([
      `\`--${name}\``,
      `\`${settingVariables(name)[0]}\``,
      name === 'config' ? '' : `\`${key}\``,
      usual,
      `${text}${guide}`,
    ]);
  };
  return page('Settings', [
    'A flag overrides the environment, which overrides `vault.yaml` in the data directory. `vault.yaml` has one `name: value` on each line; unknown names are refused.',
    "Each variable is also read as `VAULT_…` if the one with `CERTVAULT_` is not set. HashiCorp's vault reads `VAULT_LOG_LEVEL`, too: a value that is none of the levels below is ignored, and the log of the server says so.",
    'Every command takes the first five settings; the others are for `vault serve`. After a change, [reload or restart](../how-to/systemd.md#reload-settings) the server.',
    [
      tableRow(['flag', 'environment', 'vault.yaml', 'default', 'what it sets']),
      tableRow(['---', '---', '---', '---', '---']),
      ...Object.entries({ ...commonOptions, ...serveOptions }).map(row),
    ].join('\n'),
    'Durations are a number and `s`, `m`, `h`, `d` or `y`; sizes a number and `MB`, `GB` or `TB`. Session times and backup intervals are between `5m` and `30d`.',
  ]);
}

function commandsPage(commands: readonly ListedCommand[]): string {
  const acting = commands.filter(({ below, words }) => below.length === 0 && words.length > 0);
  return page('Commands', [
    'Commands work on the vault in the data directory, even while `vault serve` runs. They exit with 0 for success, 1 if the command failed or was refused, and 2 for invalid usage.',
    'Write options as `--name value` or `--name=value`. Every command has `--help`, and every command that opens a vault takes ' +
      `${Object.keys(commonOptions)
        .map((name) => `\`--${name}\``)
        .join(', ')} ([settings](settings.md)).`,
    ...acting.map(({ words, description, options, examples }) =>
      [
        `## vault ${words.join(' ')}`,
        '',
        `${sentence(description)}`,
        ...(words[0] === 'serve'
          ? ['', 'Its options are the [settings](settings.md).']
          : optionTable(options)),
        ...(examples.length === 0
          ? []
          : ['', '```sh', ...examples.flatMap(({ does, line }) => [`# ${does}`, line]), '```']),
      ].join('\n'),
    ),
  ]);
}

function optionTable(options: Readonly<Record<string, OptionSpec>>): string[] {
  const own = Object.entries(options).filter(([name]) => !Object.hasOwn(commonOptions, name));
  if (own.length === 0) return [];
  return [
    '',
    tableRow(['option', '']),
    tableRow(['---', '---']),
    ...own.map(([name, { type, valueHint, positional, required, multiple, short, description }]) => {
      const value = type === 'boolean' ? '' : ` ${valueHint ?? 'VALUE'}`;
      const written = positional === true ? (valueHint ?? name.toUpperCase()) : `--${name}${value}`;
      const notes = [required === true ? 'required' : '', multiple === true ? 'repeatable' : ''].filter(
        Boolean,
      );
      const letter = short === undefined ? '' : `\`-${short}\`, `;
      return tableRow([
        `${letter}\`${written}\``,
        `${description}${notes.length === 0 ? '' : `; ${notes.join(', ')}`}`,
      ]);
    }),
  ];
}

function metricsPage(processFamilies: Readonly<Record<string, MetricFamily>>): string {
  const table = (families: Readonly<Record<string, MetricFamily>>) =>
    [
      tableRow(['metric', 'type', 'meaning']),
      tableRow(['---', '---', '---']),
      ...Object.entries(families).map(([name, [type, help]]) => tableRow([`\`${name}\``, type, help])),
    ].join('\n');
  return page('Metrics', [
    '`vault serve --metrics-listen` or `--metrics-token-file` exports metrics at `/metrics` ([how to](../how-to/metrics.md)).',
    table(metricFamilies),
    '## Process',
    table(processFamilies),
  ]);
}

function page(title: string, parts: readonly string[]): string {
  return `${[generated, `# ${title}`, ...parts].join('\n\n')}\n`;
}

function tableRow(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell.replaceAll('|', '\\|')} `)).join('|')}|`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

if (import.meta.main) {
  for (const [path, text] of await referencePages()) writeFileSync(join(import.meta.dirname, path), text);
}
