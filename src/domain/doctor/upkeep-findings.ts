/** What nobody notices until it is missed: the clock, backups, keys that end soon, and somebody who can sign in. */
import { day, hour, minute, second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { listAuditEvents } from '../../db/audit/audit-search.ts';
import { listForgedRows } from '../../db/audit/row-tags.ts';
import { requireIntegrity } from '../../db/database.ts';
import { hasAdministrators } from '../../db/tables/administrators.ts';
import { listApiKeys } from '../../db/tables/api-keys.ts';
import { listMasterKeys } from '../../db/tables/master-keys.ts';
import { backupAge } from '../backup/backup-age.ts';
import { acceptedPath, backupsIn, setAsideIn } from '../backup/backup-directory.ts';
import type { BackupPlan } from '../backup/backup-schedule.ts';
import type { Vault } from '../vault.ts';
import type { Finding } from './finding.ts';

type Parts = Pick<Vault, 'db' | 'world'>;

/** Without a schedule, this is how old the last backup may be. */
const oldestBackup = 7 * day;

/** Time enough to hand out a new key. */
const keyNotice = 14 * day;

/** A key that ended longer ago than this is nobody's surprise any more. */
const keyMemory = 30 * day;

const mostKeys = 10;

/** Whether the vault is between two master keys. */
export async function masterKeyFindings({ db }: Parts): Promise<Finding[]> {
  const rows = await listMasterKeys(db.reader);
  if (!rows.some(({ state }) => state === 'previous')) {
    return [{ check: 'master-key', status: 'ok', message: 'it opens what the vault has sealed' }];
  }
  const message = 'a rotation has not ended, and two keys are needed';
  return [{ check: 'master-key', status: 'warning', message, hint: 'Let it end: vault master-key rotate' }];
}

/** Whether the clock stands behind what the vault has recorded already. */
export async function clockFindings({ db, world }: Parts): Promise<Finding[]> {
  const now = world.now();
  const [last] = await listAuditEvents(db.reader, {}, { limit: 1 });
  if (last !== undefined && last.at > now + minute) {
    return [
      {
        check: 'clock',
        status: 'failed',
        message: `it is ${seconds(now)} here, but the last event was recorded at ${seconds(last.at)}`,
        hint: 'The clock was set back, or was wrong before. Set it, and keep it right with NTP (timedatectl set-ntp true).',
      },
    ];
  }
  return [{ check: 'clock', status: 'ok', message: `it is ${seconds(now)} here` }];
}

/** How old the last backup is, by the schedule where there is one. */
export async function backupFindings(vault: Parts, plan: BackupPlan | undefined): Promise<Finding[]> {
  const age = await backupAge(vault);
  const hint =
    plan === undefined
      ? 'Make one with "vault backup FILE", or let the vault make them with the setting --backup-dir.'
      : 'The log of "vault serve" says why the schedule makes none.';
  const inDirectory = plan === undefined ? [] : await directoryFindings(vault, plan.directory);
  if (inDirectory.length > 0) return inDirectory;
  if (age === undefined) {
    return [{ check: 'backup', status: 'warning', message: 'there is no backup of this vault', hint }];
  }
  const old = `the last backup is ${aged(age)} old`;
  const limit = plan === undefined ? oldestBackup : 2 * plan.every;
  if (age > limit) {
    const status = plan === undefined ? 'warning' : 'failed';
    return [{ check: 'backup', status, message: old, hint }];
  }
  return [{ check: 'backup', status: 'ok', message: old }];
}

/** What is wrong among the scheduled backups; nothing where the directory cannot be read, which another finding says. */
async function directoryFindings(vault: Parts, directory: string): Promise<Finding[]> {
  const found = await backupsIn(vault, directory).catch(() => undefined);
  if (found === undefined) return [];
  const findings: Finding[] = [];
  const setAside = setAsideIn(found);
  if (setAside !== undefined) {
    const { path, holds, before } = setAside;
    findings.push({
      check: 'backup',
      status: 'failed',
      message: `the last backup holds ${holds.certificates} certificates and ${holds.versions} versions, the one before ${before.certificates} and ${before.versions}`,
      hint: `If certificates are missing, restore the backup before. If they were deleted on purpose: mv ${path} ${acceptedPath(path)}`,
    });
  }
  const [clone] = found.clones;
  if (clone !== undefined) {
    findings.push({
      check: 'backup',
      status: 'warning',
      message: `another vault with the same master key writes backups to the same directory: ${clone.path}`,
      hint: 'Give each vault a directory of its own with --backup-dir, and stop the one that is only a copy.',
    });
  }
  return findings;
}

/** API keys that are about to end, or have ended a short while ago. */
export async function apiKeyFindings({ db, world }: Parts): Promise<Finding[]> {
  const now = world.now();
  const keys = (await listApiKeys(db.reader)).filter(({ revoked_at }) => revoked_at === null);
  const ending = keys
    .filter(({ expires_at: end }) => end !== null && end < now + keyNotice && end > now - keyMemory)
    .sort((one, other) => (one.expires_at ?? 0) - (other.expires_at ?? 0));
  const findings = ending.slice(0, mostKeys).map(({ id, name, expires_at: end }): Finding => {
    const verb = (end ?? 0) <= now ? 'has expired' : 'expires';
    return {
      check: 'api-key',
      status: 'warning',
      about: name,
      message: `the key ${id}, "${name}", ${verb} on ${formatTimestamp(end ?? 0)}`,
      hint: 'Make a new one with "vault api-key create" and hand it to the client, or revoke this one.',
    };
  });
  const rest = ending.length - findings.length;
  if (rest > 0) {
    const message = `${rest} more keys end within two weeks, or have ended`;
    findings.push({ check: 'api-key', status: 'warning', message, hint: 'See "vault api-key list".' });
  }
  if (findings.length > 0) return findings;
  const message = keys.length === 0 ? 'there are none yet' : `none of ${keys.length} ends within two weeks`;
  return [{ check: 'api-key', status: 'ok', message }];
}

/** Whether somebody can sign in to the console. */
export async function administratorFindings({ db }: Parts): Promise<Finding[]> {
  if (await hasAdministrators(db.reader)) {
    return [{ check: 'administrators', status: 'ok', message: 'somebody can sign in' }];
  }
  return [
    {
      check: 'administrators',
      status: 'warning',
      message: 'nobody can sign in to the console',
      hint: 'Make an administrator with "vault admin create --name NAME".',
    },
  ];
}

/** Whether keys, administrators and sessions are as the vault wrote them. Those that are not are refused. */
export async function authenticityFindings({ db }: Parts): Promise<Finding[]> {
  const check = 'authenticity';
  const forged = await listForgedRows(db.reader, requireIntegrity(db));
  if (forged.length === 0) {
    return [
      { check, status: 'ok', message: 'keys, administrators and sessions are as the vault wrote them' },
    ];
  }
  const shown = forged.slice(0, mostKeys).join(', ');
  const rest = forged.length > mostKeys ? ` and ${forged.length - mostKeys} more` : '';
  return [
    {
      check,
      status: 'failed',
      message: `${shown}${rest} ${forged.length === 1 ? 'was' : 'were'} changed in the database by other means than the vault`,
      hint: 'They are refused. Someone can write to vault.db: see docs/how-to/respond-to-theft.md.',
    },
  ];
}

function aged(ms: number): string {
  if (ms < 2 * hour) return `${Math.floor(ms / minute)} minutes`;
  return ms < 2 * day ? `${Math.floor(ms / hour)} hours` : `${Math.floor(ms / day)} days`;
}

function seconds(ms: number): string {
  return formatTimestamp(ms - (ms % second));
}
