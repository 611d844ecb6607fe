/** Starts the jobs of the audit log: copies to a file or syslog. */
import { readFile } from 'node:fs/promises';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { runAuditFeed } from '../../jobs/audit-feed.ts';
import { auditFile } from '../../jobs/audit-file.ts';
import { auditSyslog } from '../../jobs/audit-syslog.ts';
import type { SyslogTarget } from '../../jobs/syslog-connection.ts';
import type { AuditSettings } from '../settings/audit-settings.ts';
import { hostName } from '../settings/host-name.ts';

/** Starts the jobs; each ends when `signal` is aborted. */
export function auditJobs(
  vault: LoggedContext,
  settings: AuditSettings,
  signal: AbortSignal,
): Promise<void>[] {
  const { file } = settings;
  const jobs: Promise<void>[] = [];
  if (file !== undefined) jobs.push(runAuditFeed(vault, auditFile(file), signal));
  if (settings.syslog !== undefined) jobs.push(sendToSyslog(vault, settings, signal));
  return jobs;
}

async function sendToSyslog(
  vault: LoggedContext,
  settings: AuditSettings,
  signal: AbortSignal,
): Promise<void> {
  const target = await syslogTarget(settings);
  if (target !== undefined) await runAuditFeed(vault, auditSyslog(vault.world, target, hostName()), signal);
}

/** The syslog server with its trusted certificates. Rejects with OperatorError if they cannot be read. */
export async function syslogTarget({
  syslog,
  syslogCaFile,
}: AuditSettings): Promise<SyslogTarget | undefined> {
  if (syslog?.transport !== 'tls' || syslogCaFile === undefined) return syslog;
  return { ...syslog, ca: await certificatesIn(syslogCaFile) };
}

async function certificatesIn(path: string): Promise<string> {
  const hint =
    'Use a PEM file with the certificates of the CA that issued the certificate of the syslog server.';
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const message = `--audit-syslog-ca: cannot read ${path}: ${describeSystemError(error)}`;
    throw new OperatorError(message, { hint, cause: error });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new OperatorError(`--audit-syslog-ca: no certificate in ${path}`, { hint });
}
