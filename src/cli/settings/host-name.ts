/** The name of this machine, for syslog messages and for the nodes of a shared database. */
import { hostname } from 'node:os';

/** Printable ASCII, as syslog has it (RFC 5424 §6.2.4), or `-`. */
export function hostName(): string {
  return (
    hostname()
      .replaceAll(/[^!-~]/g, '')
      .slice(0, 255) || '-'
  );
}
