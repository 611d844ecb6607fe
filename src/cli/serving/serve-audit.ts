/** Starts the jobs of the audit log: copies to a file or syslog. */
import { readFile } from 'node:fs/promises';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { type AuditSink, runAuditFeed } from '../../jobs/audit-feed.ts';
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
  const { file, syslog } = settings;
  const jobs: Promise<void>[] = [];
  if (file !== undefined) jobs.push(runAuditFeed(vault, auditFile(file), signal));
  if (syslog !== undefined) {
    jobs.push(runAuditFeed(vault, syslogSink(vault.world, syslog, settings.syslogCaFile), signal));
  }
  return jobs;
}

/**
 * Reads the trusted certificates with the first events: a file that is gone by then is retried like a server that is.
 */
function syslogSink(world: World, syslog: SyslogTarget, caFile: string | undefined): AuditSink {
  let sink: AuditSink | undefined;
  return {
    name: 'syslog',
    target: syslog.url,
    close: async () => sink?.close(),
    deliver: async (events, signal) => {
      sink ??= auditSyslog(world, await trusting(syslog, caFile), hostName());
      await sink.deliver(events, signal);
    },
  };
}

/** Rejects with OperatorError if the trusted certificates of the syslog server cannot be read. */
export async function refuseUnusableSyslog({ syslog, syslogCaFile }: AuditSettings): Promise<void> {
  if (syslog !== undefined) await trusting(syslog, syslogCaFile);
}

async function trusting(syslog: SyslogTarget, caFile: string | undefined): Promise<SyslogTarget> {
  if (syslog.transport !== 'tls' || caFile === undefined) return syslog;
  return { ...syslog, ca: await certificatesIn(caFile) };
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
