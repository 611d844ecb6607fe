/** Starts the jobs of the audit log: copies to a file or syslog. */
import { readFileSync } from 'node:fs';
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
  const target = syslogTarget(settings);
  const jobs: Promise<void>[] = [];
  if (file !== undefined) jobs.push(runAuditFeed(vault, auditFile(file), signal));
  if (target !== undefined) {
    jobs.push(runAuditFeed(vault, auditSyslog(vault.world, target, hostName()), signal));
  }
  return jobs;
}

/** The syslog server with its trusted certificates. Throws OperatorError if they cannot be read. */
export function syslogTarget({ syslog, syslogCaFile }: AuditSettings): SyslogTarget | undefined {
  if (syslog?.transport !== 'tls' || syslogCaFile === undefined) return syslog;
  return { ...syslog, ca: certificatesIn(syslogCaFile) };
}

function certificatesIn(path: string): string {
  const hint =
    'Use a PEM file with the certificates of the CA that issued the certificate of the syslog server.';
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const message = `--audit-syslog-ca: cannot read ${path}: ${describeSystemError(error)}`;
    throw new OperatorError(message, { hint, cause: error });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new OperatorError(`--audit-syslog-ca: no certificate in ${path}`, { hint });
}
