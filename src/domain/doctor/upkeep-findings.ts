/** Findings about upkeep: master key rotation, clock, backups, expiring API keys, administrators, forged rows. */

import { day, hour, minute, second } from '../../base/duration.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { lastAuditEvent } from '../../db/audit/audit-events.ts';
import { listRefusedRows } from '../../db/audit/row-list.ts';
import { listAdministrators } from '../../db/tables/access/administrators.ts';
import { listApiKeys, listSharedNames } from '../../db/tables/access/api-keys.ts';
import { listMasterKeys } from '../../db/tables/master-keys.ts';
import { backupAge } from '../backup/backup-age.ts';
import {
  acceptedPath,
  type BackupDirectory,
  backupsIn,
  keysNeededBy,
  setAsideIn,
} from '../backup/backup-directory.ts';
import type { BackupPlan } from '../backup/backup-schedule.ts';
import type { DatabaseContext, KeyringContext, TimedContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

/** How old the last backup may be without a schedule. */
const oldestBackup = 7 * day;

/** Early enough to replace the key on its clients. */
const keyNotice = 14 * day;

/** A key that expired before this is assumed to be out of use. */
const keyMemory = 30 * day;

const maxKeys = 10;

/** Whether a master key rotation is unfinished. */
export async function masterKeyFindings({ db }: DatabaseContext): Promise<Finding[]> {
  const rows = await listMasterKeys(db.reader);
  if (!rows.some(({ state }) => state === 'previous')) {
    return [{ check: 'master-key', status: 'ok', message: 'the master key opens the sealed data' }];
  }
  const message = 'a master key rotation is unfinished; the vault still needs both keys';
  return [{ check: 'master-key', status: 'warning', message, hint: 'Fix: vault master-key rotate' }];
}

/** Whether the clock is behind the last recorded audit event. */
export async function clockFindings(vault: TimedContext): Promise<Finding[]> {
  const fault = await clockFault(vault);
  if (fault !== undefined) return [{ check: 'clock', status: 'failed', ...fault }];
  return [{ check: 'clock', status: 'ok', message: `the clock says ${seconds(vault.world.now())}` }];
}

/** What is wrong with the clock, and what to do: it is behind the last recorded audit event. Undefined if it is not. */
export async function clockFault({
  db,
  world,
}: TimedContext): Promise<{ readonly message: string; readonly hint: string } | undefined> {
  const now = world.now();
  const last = await lastAuditEvent(db.reader);
  if (last === undefined || last.at <= now + minute) return undefined;
  return {
    message: `the clock says ${seconds(now)}, but the last audit event is from ${seconds(last.at)}`,
    hint: 'The clock was set back, or was wrong before. Set the clock and turn on NTP.\nFix: timedatectl set-ntp true',
  };
}

/** Whether the last backup is recent enough, by the schedule if there is one. */
export async function backupFindings(
  vault: TimedContext & KeyringContext,
  plan: BackupPlan | undefined,
): Promise<Finding[]> {
  const age = await backupAge(vault);
  const hint =
    plan === undefined
      ? 'Create one, or schedule backups with --backup-dir.\nTry: vault backup FILE'
      : 'See the log of "vault serve" for the reason.';
  const inDirectory = plan === undefined ? [] : await directoryFindings(vault, plan.directory);
  if (inDirectory.length > 0) return inDirectory;
  if (age === undefined) {
    return [{ check: 'backup', status: 'warning', message: 'no backup yet', hint }];
  }
  const old = `the last backup is ${ageText(age)} old`;
  const limit = plan === undefined ? oldestBackup : 2 * plan.every;
  if (age > limit) {
    const status = plan === undefined ? 'warning' : 'failed';
    return [{ check: 'backup', status, message: old, hint }];
  }
  return [{ check: 'backup', status: 'ok', message: old }];
}

/** Problems with the scheduled backups; none if the directory cannot be read, which another finding reports. */
async function directoryFindings(
  vault: TimedContext & KeyringContext,
  directory: string,
): Promise<Finding[]> {
  const found = await backupsIn(vault, directory).catch(() => undefined);
  if (found === undefined) return [];
  const findings: Finding[] = keyOfLastBackup(vault, found);
  const setAside = setAsideIn(found);
  if (setAside !== undefined) {
    const { path, holds, before } = setAside;
    findings.push({
      check: 'backup',
      status: 'failed',
      message: `the last backup has ${holds.certificates} certificates and ${holds.versions} versions, the previous one ${before.certificates} and ${before.versions}`,
      hint: `If certificates are missing, restore the previous backup. If they were deleted on purpose, accept this one.\nFix: mv ${path} ${acceptedPath(path)}`,
    });
  }
  const [clone] = found.clones;
  if (clone !== undefined) {
    findings.push({
      check: 'backup',
      status: 'warning',
      message: `another vault with the same master key writes backups to the same directory: ${clone.path}`,
      hint: 'Give each vault its own --backup-dir, or stop the vault that is a copy.',
    });
  }
  return findings;
}

/** Whether the newest scheduled backup can be restored with the key files that the vault finds. */
function keyOfLastBackup({ keyring }: KeyringContext, { own: [last] }: BackupDirectory): Finding[] {
  const missing = last && keysNeededBy(last.path).find((id) => keyring.find(id) === undefined);
  if (last === undefined || missing === undefined) return [];
  return [
    {
      check: 'backup',
      status: 'failed',
      message: `the last backup needs master key ${missing}, which is not beside the key file: ${last.path}`,
      hint: 'Without a copy of that key, the backup cannot be restored. Create another backup.\nFix: vault backup FILE',
    },
  ];
}

/** API keys that expire soon or expired recently, and names that several keys have. */
export async function apiKeyFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const now = world.now();
  const keys = (await listApiKeys(db.reader)).filter(({ revoked_at }) => revoked_at === null);
  const expiring = keys
    .filter(({ expires_at: end }) => end !== null && end < now + keyNotice && end > now - keyMemory)
    .sort((one, other) => (one.expires_at ?? 0) - (other.expires_at ?? 0));
  const findings = expiring.slice(0, maxKeys).map(({ id, name, expires_at: end }): Finding => {
    const verb = (end ?? 0) <= now ? 'expired' : 'expires';
    return {
      check: 'api-key',
      status: 'warning',
      about: name,
      message: `API key ${id} (${name}) ${verb} on ${formatTimestamp(end ?? 0)}`,
      hint: 'Create a new key with "vault api-key create" and give it to the client, or revoke this one.',
    };
  });
  const rest = expiring.length - findings.length;
  if (rest > 0) {
    const message = `${rest} more API keys expire within two weeks or have expired`;
    findings.push({ check: 'api-key', status: 'warning', message, hint: 'Try: vault api-key list' });
  }
  for (const { name, ids } of await listSharedNames(db.reader, maxKeys)) {
    findings.push({
      check: 'api-key',
      status: 'warning',
      about: name,
      message: `${ids.length} API keys have the name ${JSON.stringify(name)}: ids ${shortList(ids)}`,
      hint: 'Commands and the audit log need a unique name. Rename or revoke all but one.\nTry: vault api-key update ID --name NAME',
    });
  }
  if (findings.length > 0) return findings;
  const message = keys.length === 0 ? 'no API keys yet' : `none of ${keys.length} expires within two weeks`;
  return [{ check: 'api-key', status: 'ok', message }];
}

/** Whether someone can sign in without an identity provider, and someone has all rights. */
export async function administratorFindings({ db }: DatabaseContext): Promise<Finding[]> {
  const check = 'administrators';
  const everyone = await listAdministrators(db.reader);
  const local = everyone.filter(({ oidc_subject }) => oidc_subject === null);
  const [admin] = everyone.filter(({ role }) => role === 'admin');
  if (local.length > 0 && admin !== undefined) {
    return [{ check, status: 'ok', message: 'at least one administrator can sign in' }];
  }
  const [someone] = local;
  if (someone !== undefined) {
    const message = 'no administrator has the role admin; no one can change rights in the console';
    return [
      {
        check,
        status: 'warning',
        message,
        hint: `Fix: vault admin update --name ${someone.name} --role admin`,
      },
    ];
  }
  const message =
    everyone.length > 0
      ? 'no administrator with a password; no one can sign in while the identity provider is down'
      : 'no administrator; the console is closed to everyone';
  return [{ check, status: 'warning', message, hint: 'Fix: vault admin create --name NAME' }];
}

/**
 * Whether API keys, ACME clients, enrollments, administrators and sessions carry valid integrity tags. The vault
 * refuses those that do not.
 */
export async function authenticityFindings({ db }: DatabaseContext): Promise<Finding[]> {
  const check = 'authenticity';
  const integrity = requireIntegrity(db);
  const forged = await listRefusedRows(db.reader, integrity);
  if (forged.length === 0) {
    return [
      {
        check,
        status: 'ok',
        message: 'API keys, ACME clients, enrollments, administrators, sessions and labels are unmodified',
      },
    ];
  }
  const shown = forged.slice(0, maxKeys).join(', ');
  const rest = forged.length > maxKeys ? ` and ${forged.length - maxKeys} more` : '';
  return [
    {
      check,
      status: 'failed',
      message: `${shown}${rest} ${forged.length === 1 ? 'was' : 'were'} modified in the database outside the vault`,
      hint: 'The vault refuses them. Someone else can write to vault.db: see docs/how-to/respond-to-theft.md.',
    },
  ];
}

function shortList(ids: readonly number[]): string {
  const rest = ids.length - maxKeys;
  return `${ids.slice(0, maxKeys).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

function ageText(ms: number): string {
  if (ms < 2 * hour) return `${Math.floor(ms / minute)} minutes`;
  return ms < 2 * day ? `${Math.floor(ms / hour)} hours` : `${Math.floor(ms / day)} days`;
}

function seconds(ms: number): string {
  return formatTimestamp(ms - (ms % second));
}
