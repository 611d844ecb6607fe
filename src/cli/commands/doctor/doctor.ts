/**
 * `vault doctor`: checks the vault and its surroundings without changing anything, and says how to fix what it finds.
 */
import { OperatorError } from '../../../base/operator-error.ts';
import { printable } from '../../../base/printable-text.ts';
import { StorageError } from '../../../base/storage-error.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { acmeClientFindings } from '../../../domain/doctor/acme-client-findings.ts';
import { authorityFindings } from '../../../domain/doctor/authority-findings.ts';
import { certificateFindings, renewalFindings } from '../../../domain/doctor/certificate-findings.ts';
import { databaseFindings } from '../../../domain/doctor/database-findings.ts';
import { deploymentFindings } from '../../../domain/doctor/deployment-findings.ts';
import { endpointFindings } from '../../../domain/doctor/endpoint-findings.ts';
import { type Finding, findingFrom, worstOf } from '../../../domain/doctor/finding.ts';
import { hookFindings } from '../../../domain/doctor/hook-findings.ts';
import { issuerFindings } from '../../../domain/doctor/issuer-findings.ts';
import { keyFindings } from '../../../domain/doctor/key-findings.ts';
import { nodeFindings } from '../../../domain/doctor/node-findings.ts';
import { notificationFindings } from '../../../domain/doctor/notification-findings.ts';
import { oidcFindings } from '../../../domain/doctor/oidc-findings.ts';
import { reachabilityFindings } from '../../../domain/doctor/reachability-findings.ts';
import {
  administratorFindings,
  apiKeyFindings,
  authenticityFindings,
  backupFindings,
  clockFindings,
  masterKeyFindings,
} from '../../../domain/doctor/upkeep-findings.ts';
import { OidcProvider } from '../../../domain/oidc/oidc-provider.ts';
import { rootPem } from '../../../domain/private-ca/local-ca.ts';
import type { Vault } from '../../../domain/vault.ts';
import { unguarded } from '../../../net/outbound-guard.ts';
import { outboundHttp } from '../../../net/outbound-http.ts';
import { command } from '../../runtime/command.ts';
import { passphrasePrompt } from '../../runtime/master-keys.ts';
import { openVault } from '../../runtime/open-vault.ts';
import { named } from '../../runtime/program-name.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { serverFinding, serverUrl } from '../../serving/doctor-server.ts';
import { readProviderSettings } from '../../settings/oidc-settings.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import { publicUrl } from '../../settings/setting-values.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { jsonText } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { inspectBackupPlace, inspectPlaces, inspectSettingPaths } from './doctor-places.ts';

export const doctorCommand = command({
  name: 'doctor',
  description: 'Check the vault and say how to fix problems',
  examples: [
    { does: 'Check everything without changing anything', line: 'vault doctor' },
    { does: 'Check as JSON, without network access', line: 'vault doctor --offline --json' },
  ],
  options: {
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'the URL of the server (default: that of the running server, else from the settings)',
    },
    offline: { type: 'boolean', description: 'skip checks that need the network: CAs, DNS, port 80' },
    strict: { type: 'boolean', description: 'treat warnings as failures' },
    json: { type: 'boolean', description: 'print JSON' },
  },
  run: async (args, terminal) => {
    const { stdout, version, world } = terminal;
    const findings = await runChecks(args, terminal);
    const status = worstOf(findings);
    if (args.json) {
      stdout.write(jsonText({ status, at: formatTimestamp(world.now()), version, findings }));
    } else stdout.write(named(findings.map(paragraph).join('')));
    const isBad = ({ status: one }: Finding) => one === 'failed' || (args.strict && one === 'warning');
    const bad = findings.filter(isBad).length;
    if (bad === 0) return;
    throw new OperatorError(
      `${bad} of ${findings.length} findings ${bad === 1 ? 'needs' : 'need'} attention`,
      {
        hint: 'The lines above say how to fix them.',
      },
    );
  },
});

type DoctorOptions = Parameters<typeof readSettings>[0] & {
  readonly url: string | undefined;
  readonly offline: boolean;
};

/** Runs all checks in order of dependency; checks that depend on a failed one are skipped. */
async function runChecks(args: DoctorOptions, terminal: Terminal): Promise<Finding[]> {
  const { world, environment } = terminal;
  const { url: given, offline, ...flags } = args;
  const url = given === undefined ? undefined : publicUrl({ value: given, from: '--url' });
  let settings: Settings;
  try {
    settings = await readSettings(flags, environment);
  } catch (error) {
    return [findingFrom(error, 'settings')];
  }
  const places = inspectPlaces(settings);
  const {
    findings,
    root,
    inUse = settings,
  } = places.canBeOpened ? await checkContents(settings, terminal, offline) : { findings: [] };
  // No proxy: the server runs on this machine.
  const direct = outboundHttp(world, {}, 'vault-doctor', unguarded);
  const served = await serverFinding(direct, url ?? serverUrl(inUse), root);
  return [
    ...places.findings,
    ...(await inspectSettingPaths(settings)),
    ...(await inspectBackupPlace(inUse)),
    ...findings,
    served,
  ];
}

type ContentFindings = {
  readonly findings: readonly Finding[];
  /** The root of the private CA, which may have issued the server's certificate. */
  readonly root?: string;
  /** The settings of the running server, or else those of this command. */
  readonly inUse?: Settings;
};

async function checkContents(
  settings: Settings,
  terminal: Terminal,
  offline: boolean,
): Promise<ContentFindings> {
  const { world } = terminal;
  let opened: Awaited<ReturnType<typeof openVault>>;
  try {
    opened = await openVault(settings, world, 'refuse', undefined, passphrasePrompt(terminal));
  } catch (error) {
    return { findings: [findingFrom(error, error instanceof StorageError ? 'database' : 'master-key')] };
  }
  const { vault, close } = opened;
  try {
    const inUse = await settingsInUse(vault, settings);
    const direct = outboundHttp(world, {}, 'vault-doctor', vault.guard);
    const network = offline
      ? []
      : [
          issuerFindings(vault),
          reachabilityFindings(vault, direct, stopSignal()),
          checkProvider(vault, settings),
        ];
    const parts = await Promise.all([
      databaseFindings(vault),
      masterKeyFindings(vault),
      clockFindings(vault),
      certificateFindings(vault),
      renewalFindings(vault),
      authorityFindings(vault),
      keyFindings(vault, settings.tls?.kind === 'certificate' ? settings.tls.name : undefined),
      apiKeyFindings(vault),
      acmeClientFindings(vault),
      deploymentFindings(vault),
      endpointFindings(vault),
      administratorFindings(vault),
      authenticityFindings(vault),
      backupFindings(vault, inUse.backups),
      notificationFindings(vault),
      hookFindings(vault),
      nodeFindings(vault),
      ...network,
    ]);
    return { findings: parts.flat(), root: await rootPem(vault), inUse };
  } finally {
    await close();
  }
}

async function checkProvider(vault: Vault, { oidc }: Settings): Promise<Finding[]> {
  if (oidc === undefined) return [];
  try {
    return await oidcFindings(new OidcProvider(vault, readProviderSettings(oidc)));
  } catch (error) {
    return [findingFrom(error, 'oidc')];
  }
}

const statusLabels: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  skipped: '-',
  warning: 'WARNING',
  failed: 'FAILED',
};

/** `FAILED   certificate     message`, with the hint on the lines below. */
function paragraph({ check, status, message, hint }: Finding): string {
  const isFine = status === 'ok' || status === 'skipped';
  const advice = isFine || hint === undefined ? [] : hint.split('\n').map((line) => line.trim());
  const lines = [
    `${statusLabels[status].padEnd(9)}${check.padEnd(16)}${printable(message)}`,
    ...advice.map((line) => `${' '.repeat(25)}${printable(line)}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
