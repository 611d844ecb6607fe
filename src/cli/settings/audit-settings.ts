/** The settings about the audit log: how long it is kept, and who gets a copy of its events. */
import { hostname } from 'node:os';
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
    description: 'how long audit events are kept (default: forever)',
  },
  'audit-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'where to append audit events as lines of JSON (default: nowhere)',
  },
  'audit-syslog': {
    type: 'string',
    valueHint: 'URL',
    description:
      'where to send audit events: tcp://, tls:// or udp://HOST:PORT, or unix:PATH (default: nowhere)',
  },
  'low-disk-space': {
    type: 'string',
    valueHint: 'SIZE',
    description: 'warn below this; refusals are only counted below a quarter of it (default: 1GB)',
  },
  'audit-syslog-ca': {
    type: 'string',
    valueHint: 'FILE',
    description: 'PEM certificates to trust for tls:// in place of the public ones',
  },
} as const;

const usualLowSpace = 1_000_000_000;

export type AuditSettings = {
  /** Milliseconds, or undefined for ever. */
  readonly keepFor: number | undefined;
  readonly file: string | undefined;
  readonly syslog: SyslogTarget | undefined;
  readonly syslogCaFile: string | undefined;
  /** Bytes; 0 for no look at the disk. */
  readonly lowSpace: number;
};

/** Throws OperatorError that names the setting that is wrong. */
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

/** How this host is called in syslog messages: printable ASCII (RFC 5424 §6.2.4), or `-`. */
export function syslogHostname(): string {
  return (
    hostname()
      .replaceAll(/[^!-~]/g, '')
      .slice(0, 255) || '-'
  );
}

function retention(setting: Found | undefined): number | undefined {
  if (setting === undefined || setting.value === 'forever') return undefined;
  const ms = parseDuration(setting.value);
  if (ms !== undefined && ms >= day) return ms;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not how long audit events can be kept`, {
    hint: 'Write forever, or a number and d or y, from 1d, such as 400d or 7y.',
  });
}

function lowSpace(setting: Found | undefined): number {
  if (setting === undefined) return usualLowSpace;
  const bytes = setting.value === '0' ? 0 : parseByteSize(setting.value);
  if (bytes !== undefined) return bytes;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a size`, {
    hint: 'Write a whole number and MB, GB or TB, such as 500MB or 2GB, or 0 to turn the check off.',
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
    throw new OperatorError(`${from}: "${url}" is no collector of syslog messages`, {
      hint: 'Write tcp://HOST:PORT, tls://HOST:PORT, udp://HOST:PORT or unix:/PATH, such as tls://logs.example.com:6514.',
    });
  }
  return { url, transport: transport as 'tcp' | 'tls' | 'udp', host, port };
}
