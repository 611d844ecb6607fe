/** Parses setting values. Each function throws OperatorError that names the setting and its source. */
import { isIP } from 'node:net';
import { day, minute, parseDuration } from '../../base/duration.ts';
import { type LogLevel, logLevels } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';

/** The text of a setting and its source, such as `--listen` or `listen in /etc/vault.yaml`. */
export type Found = { readonly value: string; readonly from: string };

export type ListenAddress = { readonly host: string; readonly port: number };

/** HOST:PORT to listen on; an empty host means every address. */
export function listenAddress({ value, from }: Found): ListenAddress {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (match === null || port > 65_535 || host === undefined || (match[1] !== undefined && isIP(host) !== 6)) {
    throw new OperatorError(`${from}: "${value}" is not an address to listen on`, {
      hint: 'Use HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080.',
    });
  }
  return { host: host === '' ? '0.0.0.0' : host, port };
}

/** `ip:port` of a DNS server; the default port is 53. */
export function resolverAddress({ value, from }: Found): string {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(value);
  const address = isIP(value) === 0 ? (match?.[1] ?? match?.[2] ?? '') : value;
  const port = isIP(value) === 0 ? Number(match?.[3] ?? 53) : 53;
  const isBracketed = match?.[1] !== undefined;
  if (isIP(address) === 0 || (isBracketed && isIP(address) !== 6) || port < 1 || port > 65_535) {
    throw new OperatorError(`${from}: "${value}" is not the address of a DNS server`, {
      hint: 'Use an IP address, with a port if it is not 53, such as 192.0.2.53 or [2001:db8::53]:5353.',
    });
  }
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The origin (scheme, host and port) at which clients reach the vault. */
export function publicUrl(setting: Found | undefined): string | undefined {
  if (setting === undefined) return undefined;
  const url = URL.parse(setting.value);
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.pathname !== '/' ||
    url.search + url.hash + url.username !== ''
  ) {
    throw new OperatorError(
      `${setting.from}: "${setting.value}" is not an http or https URL without a path`,
      {
        hint: 'Use a URL such as https://vault.example.com.',
      },
    );
  }
  return url.origin;
}

/** true, 1, yes, on or their opposites; false if not set. */
export function truth(setting: Found | undefined): boolean {
  if (setting === undefined) return false;
  if (/^(true|1|yes|on)$/i.test(setting.value)) return true;
  if (/^(false|0|no|off)$/i.test(setting.value)) return false;
  throw new OperatorError(`${setting.from}: "${setting.value}" is neither true nor false`, {
    hint: 'Use true or false.',
  });
}

/** A log level; info if not set. */
export function logLevel(setting: Found | undefined): LogLevel {
  if (setting === undefined) return 'info';
  const level = logLevels.find((known) => known === setting.value);
  if (level !== undefined) return level;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a log level`, {
    hint: `Use one of ${logLevels.join(', ')}.`,
  });
}

/** The length of a session in milliseconds, from 5 minutes to 30 days; `usual` if not set. */
export function sessionDuration(setting: Found | undefined, usual: number): number {
  if (setting === undefined) return usual;
  const ms = parseDuration(setting.value);
  if (ms !== undefined && ms >= 5 * minute && ms <= 30 * day) return ms;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a valid session length`, {
    hint: 'Use a number with m, h or d, from 5m to 30d, such as 30m.',
  });
}
