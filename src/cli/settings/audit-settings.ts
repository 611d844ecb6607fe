/** The settings of the audit log: retention, copies to a file or syslog, and low disk space. */
import { resolve } from 'node:path';
import { parseByteSize } from '../../base/byte-size.ts';
import { day, parseDuration } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { SyslogTarget } from '../../jobs/syslog-connection.ts';
import type { Found } from './setting-values.ts';

export const auditOptions = {
  'audit-retention': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'how long to keep audit events (default: forever)',
  },
  'audit-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'append audit events to this file as JSON Lines (default: none)',
  },
  'audit-syslog': {
    type: 'string',
    valueHint: 'URL',
    description:
      'send audit events to this syslog server: tcp://, tls:// or udp://HOST:PORT, or unix:PATH (default: none)',
  },
  'low-disk-space': {
    type: 'string',
    valueHint: 'SIZE',
    description:
      'warn below this much free space; below a quarter of it, only count refused requests (default: 1GB)',
  },
  'audit-syslog-ca': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust for tls:// instead of the public CAs',
  },
} as const;

const defaultLowSpace = 1_000_000_000;

export type AuditSettings = {
  /** Milliseconds; undefined to keep events forever. */
  readonly keepFor: number | undefined;
  readonly file: string | undefined;
  readonly syslog: SyslogTarget | undefined;
  readonly syslogCaFile: string | undefined;
  /** Bytes; 0 turns the check off. */
  readonly lowSpace: number;
};

/** Throws OperatorError that names the invalid setting. */
export function auditSettings(
  setting: (name: keyof typeof auditOptions) => Found | undefined,
): AuditSettings {
  const file = setting('audit-file');
  const caFile = setting('audit-syslog-ca');
  return {
    keepFor: retention(setting('audit-retention')),
    file: file && resolve(file.value),
    syslog: syslogTarget(setting('audit-syslog')),
    syslogCaFile: caFile && resolve(caFile.value),
    lowSpace: lowSpace(setting('low-disk-space')),
  };
}

function retention(setting: Found | undefined): number | undefined {
  if (setting === undefined || setting.value === 'forever') return undefined;
  const ms = parseDuration(setting.value);
  if (ms !== undefined && ms >= day) return ms;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a valid retention`, {
    hint: 'Use forever, or a number with d or y, at least 1d, such as 400d or 7y.',
  });
}

function lowSpace(setting: Found | undefined): number {
  if (setting === undefined) return defaultLowSpace;
  const bytes = setting.value === '0' ? 0 : parseByteSize(setting.value);
  if (bytes !== undefined) return bytes;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a size`, {
    hint: 'Use a whole number with MB, GB or TB, such as 500MB or 2GB, or 0 to turn the check off.',
  });
}

function syslogTarget(setting: Found | undefined): SyslogTarget | undefined {
  if (setting === undefined) return undefined;
  const { value: url, from } = setting;
  const [, path] = /^unix:(?:\/\/)?(\/.+)$/.exec(url) ?? [];
  if (path !== undefined) return { url, transport: 'unix', path };
  const [, transport, address, name, digits] =
    /^(tcp|tls|udp):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(url) ?? [];
  const host = address ?? name;
  const port = Number(digits);
  if (transport === undefined || host === undefined || port < 1 || port > 65_535) {
    throw new OperatorError(`${from}: "${url}" is not a syslog server`, {
      hint: 'Use tcp://HOST:PORT, tls://HOST:PORT, udp://HOST:PORT or unix:/PATH, such as tls://logs.example.com:6514.',
    });
  }
  return { url, transport: transport as 'tcp' | 'tls' | 'udp', host, port };
}
