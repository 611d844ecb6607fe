/** The jobs of the audit log that the settings ask for: what keeps it short, and what hands its events on. */
import { readFileSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { runAuditFeed } from '../../jobs/audit-feed.ts';
import { auditFile } from '../../jobs/audit-file.ts';
import { runAuditRetention } from '../../jobs/audit-retention.ts';
import { auditSyslog } from '../../jobs/audit-syslog.ts';
import type { SyslogTarget } from '../../jobs/syslog-connection.ts';
import { type AuditSettings, syslogHostname } from '../settings/audit-settings.ts';

/** Starts them; each ends when `signal` is aborted. */
export function auditJobs(
  vault: LoggedContext,
  settings: AuditSettings,
  signal: AbortSignal,
): Promise<void>[] {
  const { keepFor, file } = settings;
  const target = collectorOf(settings);
  const jobs: Promise<void>[] = [];
  if (keepFor !== undefined) jobs.push(runAuditRetention(vault, keepFor, signal));
  if (file !== undefined) jobs.push(runAuditFeed(vault, auditFile(file), signal));
  if (target !== undefined) {
    jobs.push(runAuditFeed(vault, auditSyslog(vault.world, target, syslogHostname()), signal));
  }
  return jobs;
}

/** Where syslog messages go, with what is trusted there. Throws OperatorError where that cannot be read. */
export function collectorOf({ syslog, syslogCaFile }: AuditSettings): SyslogTarget | undefined {
  if (syslog?.transport !== 'tls' || syslogCaFile === undefined) return syslog;
  return { ...syslog, ca: certificatesIn(syslogCaFile) };
}

function certificatesIn(path: string): string {
  const hint = 'Name a file with the certificates of the CA that signs for the collector, as PEM.';
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const message = `--audit-syslog-ca: ${path} cannot be read: ${(error as Error).message}`;
    throw new OperatorError(message, { hint, cause: error });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new OperatorError(`--audit-syslog-ca: ${path} holds no certificate`, { hint });
}
