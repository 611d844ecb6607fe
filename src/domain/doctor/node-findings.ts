/**
 * Findings about the nodes of a shared database: which run, their versions, clocks and settings, and which runs the
 * jobs.
 */
import { second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { SharedContext } from '../nodes/database-clock.ts';
import { leaderAt } from '../nodes/leadership.ts';
import { recordedNodes, type ServingNode, silenceOfNodes } from '../nodes/nodes.ts';
import type { ServedSettings } from '../nodes/server-record.ts';
import type { Finding } from './finding.ts';

const check = 'nodes';

/** The vault corrects a clock that is wrong; certificates, logs and other programs of the machine do not. */
const largestSkew = 30 * second;

/** Settings with which all nodes should serve. Addresses and files may differ between machines. */
const commonSettings = [
  'public_url',
  'tls_certificate',
  'backup_dir',
  'backup_every',
  'backup_keep',
] as const satisfies readonly (keyof ServedSettings)[];

/** The state of the nodes; no findings where only this machine can use the database. */
export async function nodeFindings({ db, sharedClock }: DatabaseContext & SharedContext): Promise<Finding[]> {
  if (sharedClock === undefined) return [];
  const now = await sharedClock.databaseNow();
  const nodes = await recordedNodes(db.reader);
  const isLive = ({ seenAt }: ServingNode) => seenAt > now - silenceOfNodes;
  const live = nodes.filter(isLive);
  const findings = [
    ...nodes.filter((node) => !isLive(node)).map(silence),
    ...versionFindings(live),
    ...live.flatMap(clockFinding),
    ...settingsFindings(live),
  ];
  if (live.length === 0) {
    const hint = 'Try: vault serve';
    return [...findings, { check, status: 'warning', message: 'no node serves this database', hint }];
  }
  const leader = await leaderAt({ db }, now);
  if (leader === undefined) {
    findings.push({
      check,
      status: 'warning',
      message: 'no node runs the background jobs; renewals, notifications and backups wait',
      hint: 'A node takes over within 15 seconds. If this stays, see the logs of the nodes.',
    });
  }
  const names = live.map(({ id, host }) => (id === leader ? `${host} (background jobs)` : host));
  const count = `${live.length} node${live.length === 1 ? '' : 's'}`;
  const message = `${count} with ${versionsOf(live)}: ${names.join(', ')}`;
  return findings.length > 0 ? findings : [{ check, status: 'ok', message }];
}

function silence({ host, seenAt }: ServingNode): Finding {
  return {
    check,
    status: 'warning',
    about: host,
    message: `node ${host} was last seen at ${formatTimestamp(seenAt - (seenAt % second))}`,
    hint: 'See its log, and whether it reaches the database. After ten minutes a node that stopped is forgotten.',
  };
}

/** During an upgrade, nodes of two adjacent releases run side by side. */
function versionFindings(live: readonly ServingNode[]): Finding[] {
  const versions = [...new Set(live.map(({ version }) => version))];
  const areAdjacent = versions.every((one) => versions.every((other) => isAdjacent(one, other)));
  if (areAdjacent) return [];
  const each = live.map(({ host, version }) => `${host} has ${version}`).join(', ');
  const message = `nodes have releases that do not work side by side: ${each}`;
  const hint = 'Upgrade the older nodes, one release after the other.';
  return [{ check, status: 'warning', message, hint }];
}

/** Whether there is no release between the two, as far as their numbers say. */
function isAdjacent(one: string, other: string): boolean {
  if (one === other) return true;
  const [older, newer] = [releaseOf(one), releaseOf(other)].sort(
    (a, b) => a.major - b.major || a.minor - b.minor,
  );
  if (older === undefined || newer === undefined) return false;
  if (older.major === newer.major) return newer.minor - older.minor <= 1;
  return newer.major - older.major === 1 && newer.minor === 0;
}

/** Not a number for what is no version; that is adjacent to nothing. */
function releaseOf(version: string): { major: number; minor: number } {
  const [, major, minor] = /^(\d{1,9})\.(\d{1,9})\./.exec(version) ?? [];
  return { major: Number(major), minor: Number(minor) };
}

function clockFinding({ host, clockAhead }: ServingNode): Finding[] {
  if (Math.abs(clockAhead) <= largestSkew) return [];
  const seconds = Math.round(Math.abs(clockAhead) / second);
  const where = clockAhead > 0 ? 'ahead of' : 'behind';
  return [
    {
      check,
      status: 'warning',
      about: host,
      message: `the clock of node ${host} is ${seconds} s ${where} that of the database`,
      hint: 'Set the clock there and turn on NTP, also on the database servers.\nFix: timedatectl set-ntp true',
    },
  ];
}

function settingsFindings(live: readonly ServingNode[]): Finding[] {
  return commonSettings.flatMap((name): Finding[] => {
    const values = live.flatMap(({ host, settings }) =>
      settings === undefined ? [] : [{ host, value: String(settings[name] ?? 'none') }],
    );
    if (new Set(values.map(({ value }) => value)).size <= 1) return [];
    const each = values.map(({ host, value }) => `${value} (${host})`).join(', ');
    return [
      {
        check,
        status: 'warning',
        message: `nodes have different settings of ${name}: ${each}`,
        hint: 'Give all nodes the same value, then restart those that were changed.',
      },
    ];
  });
}

function versionsOf(live: readonly ServingNode[]): string {
  const versions = [...new Set(live.map(({ version }) => version))].sort();
  return `version${versions.length === 1 ? '' : 's'} ${versions.join(' and ')}`;
}
