/** `vault doctor`: looks at everything that a vault needs, changes nothing, and says what to do. */
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { certificateFindings, renewalFindings } from '../../domain/doctor/certificate-findings.ts';
import { type Finding, findingFrom, worstOf } from '../../domain/doctor/finding.ts';
import { issuerFindings } from '../../domain/doctor/issuer-findings.ts';
import { notificationFindings } from '../../domain/doctor/notification-findings.ts';
import { reachabilityFindings } from '../../domain/doctor/reachability-findings.ts';
import {
  administratorFindings,
  apiKeyFindings,
  authenticityFindings,
  backupFindings,
  clockFindings,
  masterKeyFindings,
} from '../../domain/doctor/upkeep-findings.ts';
import { rootPem } from '../../domain/issuance/local-ca.ts';
import { unguarded } from '../../net/outbound-guard.ts';
import { outboundHttp } from '../../net/outbound-http.ts';
import { command } from '../runtime/command.ts';
import { askAt } from '../runtime/master-keys.ts';
import { openVault } from '../runtime/open-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { serverFinding, serverUrl } from '../serving/doctor-server.ts';
import { publicUrl } from '../settings/setting-values.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { jsonText, printable } from '../terminal/output.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { inspectPlaces } from './doctor-places.ts';

export const doctorCommand = command({
  name: 'doctor',
  description: 'examine the vault and what it needs; change nothing, and say what to do',
  examples: [
    { does: 'See what is wrong, and what to do', line: 'vault doctor' },
    { does: 'For monitoring, on a machine without a network', line: 'vault doctor --offline --json' },
  ],
  options: {
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'where the vault is served (default: by its settings)',
    },
    offline: { type: 'boolean', description: 'ask nobody on the network: no CA, no name, no port 80' },
    strict: { type: 'boolean', description: 'count warnings as failures' },
    json: { type: 'boolean', description: 'print JSON, for programs' },
  },
  run: async (args, terminal) => {
    const { stdout, version, world } = terminal;
    const findings = await examination(args, terminal);
    const status = worstOf(findings);
    if (args.json) {
      stdout.write(jsonText({ status, at: formatTimestamp(world.now()), version, findings }));
    } else stdout.write(findings.map(paragraph).join(''));
    const isBad = ({ status: one }: Finding) => one === 'failed' || (args.strict && one === 'warning');
    const bad = findings.filter(isBad).length;
    if (bad === 0) return;
    throw new OperatorError(
      `${bad} of ${findings.length} findings ${bad === 1 ? 'needs' : 'need'} attention`,
      {
        hint: 'The lines above say what to do.',
      },
    );
  },
});

type DoctorOptions = Parameters<typeof readSettings>[0] & {
  readonly url: string | undefined;
  readonly offline: boolean;
};

/** Everything that can be looked at, from the ground up; what stands on something broken is left out. */
async function examination(args: DoctorOptions, terminal: Terminal): Promise<Finding[]> {
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
  const { findings, root } = places.canBeOpened
    ? await lookInside(settings, terminal, offline)
    : { findings: [] };
  // Without a proxy: this is about this machine, which is where the settings say.
  const direct = outboundHttp(world, {}, 'vault-doctor', unguarded);
  const served = await serverFinding(direct, url ?? serverUrl(settings), root);
  return [...places.findings, ...findings, served];
}

type Inside = {
  readonly findings: readonly Finding[];
  /** Of the private CA, which may have made the server's certificate. */
  readonly root?: string;
};

async function lookInside(settings: Settings, terminal: Terminal, offline: boolean): Promise<Inside> {
  const { world } = terminal;
  let opened: Awaited<ReturnType<typeof openVault>>;
  try {
    opened = await openVault(settings, world, 'refuse', undefined, askAt(terminal));
  } catch (error) {
    return { findings: [findingFrom(error, error instanceof StorageError ? 'database' : 'master-key')] };
  }
  const { vault, close } = opened;
  try {
    const direct = outboundHttp(world, {}, 'vault-doctor', vault.guard);
    const elsewhere = offline
      ? []
      : [issuerFindings(vault), reachabilityFindings(vault, direct, stopSignal())];
    const parts = await Promise.all([
      masterKeyFindings(vault),
      clockFindings(vault),
      certificateFindings(vault),
      renewalFindings(vault),
      apiKeyFindings(vault),
      administratorFindings(vault),
      authenticityFindings(vault),
      backupFindings(vault, settings.backups),
      notificationFindings(vault),
      ...elsewhere,
    ]);
    return { findings: parts.flat(), root: await rootPem(vault) };
  } finally {
    await close();
  }
}

const words: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  skipped: '-',
  warning: 'WARNING',
  failed: 'FAILED',
};

/** `FAILED   certificate     what`, and below it what to do. */
function paragraph({ check, status, message, hint }: Finding): string {
  const isWell = status === 'ok' || status === 'skipped';
  const advice = isWell || hint === undefined ? [] : hint.split('\n').map((line) => line.trim());
  const lines = [
    `${words[status].padEnd(9)}${check.padEnd(16)}${printable(message)}`,
    ...advice.map((line) => `${' '.repeat(25)}${printable(line)}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
