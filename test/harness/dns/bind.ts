/**
 * BIND's named as a name server with dynamic updates (RFC 2136, TSIG of RFC 8945) for the zones of a test. Like a CA's
 * resolver it follows aliases between its zones, but it knows no other names and sends no queries to other servers.
 * Tests need `needsBind()`.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findProgram, needs, type Skip } from '../processes/missing-program.ts';
import { type StartedServer, startOnFreePorts } from '../processes/port.ts';

export type Zone = {
  readonly name: string;
  /**
   * Lines of a zone file, with names relative to the zone: `* A 127.0.0.1`, `www CNAME web.other.test.`,
   * `@ TXT "some text"`.
   */
  readonly records?: readonly string[];
};

export type TsigAlgorithm = 'hmac-sha1' | 'hmac-sha224' | 'hmac-sha256' | 'hmac-sha384' | 'hmac-sha512';

export type BindOptions = {
  /** A zone has NS `ns.ZONE` and, for that, A 127.0.0.1, besides its own records. Zones may be nested. */
  readonly zones: readonly (string | Zone)[];
  /** By default hmac-sha256. */
  readonly algorithm?: TsigAlgorithm;
  /** Adds a secondary name server of all zones, `ns2.ZONE` at 127.0.0.2, which polls for changes every two seconds. */
  readonly secondary?: boolean;
};

export type Bind = Omit<StartedServer, 'ports'> & {
  /** `127.0.0.1:PORT`, for UDP and TCP */
  readonly server: string;
  readonly host: string;
  readonly port: number;
  /** The key, which may only change TXT records. */
  readonly keyName: string;
  readonly algorithm: TsigAlgorithm;
  /** base64 */
  readonly secret: string;
  /** The real address of the secondary server, because named only listens on addresses of interfaces. */
  readonly secondary: string | undefined;
  /** The sorted TXT records at a name, each joined; follows aliases. */
  readonly txt: (name: string) => Promise<string[]>;
};

const host = '127.0.0.1';
const keyName = 'vault-test-key';

/** Debian's PATH for ordinary users does not include sbin. */
const folders = ['/usr/sbin', '/usr/local/sbin'];

/** Options for a test that needs `bind()`: see `needs()`. */
export function needsBind(): Skip {
  return needs('named', folders);
}

/** Starts named on a free loopback port. It stops when the test ends. */
export async function bind(t: Pick<TestContext, 'after'>, options: BindOptions): Promise<Bind> {
  const { algorithm = 'hmac-sha256', secondary = false } = options;
  const zones = options.zones.map((zone) => (typeof zone === 'string' ? { name: zone } : zone));
  const secret = randomBytes(32).toString('base64');
  const installed = findProgram('named', folders);
  assert(installed, 'named is not installed: the test lacks needsBind()');
  const { ports, pid, log } = await startOnFreePorts(t, 1, ([port = 0], dir) => {
    // AppArmor restricts /usr/sbin/named, which it identifies by path, to its own folders.
    const program = join(dir, 'named');
    copyFileSync(installed, program);
    for (const zone of zones) writeFileSync(join(dir, `${zone.name}.zone`), zoneFile(zone, secondary));
    writeFileSync(join(dir, 'root.zone'), rootZone);
    writeFileSync(join(dir, 'named.conf'), configuration(port, zones, algorithm, secret, secondary));
    const args = ['-g', '-4', '-n', '1', '-c', join(dir, 'named.conf')];
    return { program, args, isReady };
  });
  const [port = 0] = ports;
  const second = secondary ? await startSecondary(t, installed, port, zones) : undefined;
  const server = `${host}:${port}`;
  const txt = (name: string) => txtRecords(server, name);
  return { pid, log, server, host, port, keyName, algorithm, secret, secondary: second, txt };
}

function isReady(log: string): boolean {
  const complaint = /^.*(not loaded due to errors|loading from master file).*$/m.exec(log);
  if (complaint) throw new Error(`named rejected a zone: ${log}`);
  return / running\n/.test(log);
}

const secondAddress = '127.0.0.2';

/** Gets no NOTIFY, as behind a firewall, so it polls and lags behind. */
async function startSecondary(
  t: Pick<TestContext, 'after'>,
  installed: string,
  primary: number,
  zones: readonly Zone[],
): Promise<string> {
  const { ports } = await startOnFreePorts(t, 1, ([port = 0], dir) => {
    const program = join(dir, 'named');
    copyFileSync(installed, program);
    const secondary = `type secondary; primaries port ${primary} { ${host}; };`;
    const lines = [
      'options {',
      '  directory "."; pid-file none; session-keyfile none; reuseport no; max-cache-size 8m;',
      `  listen-on port ${port} { ${host}; }; listen-on-v6 { none; };`,
      '  recursion no; notify no; dnssec-validation no; min-refresh-time 2; max-refresh-time 2;',
      '};',
      'controls { };',
      ...zones.map(({ name }) => `zone "${name}" { ${secondary} file "${name}.copy"; };`),
    ];
    writeFileSync(join(dir, 'named.conf'), `${lines.join('\n')}\n`);
    const args = ['-g', '-4', '-n', '1', '-c', join(dir, 'named.conf')];
    const hasAll = (log: string) =>
      isReady(log) && zones.every(({ name }) => log.includes(`transfer of '${name}/IN' from`));
    return { program, args, isReady: hasAll };
  });
  return `${host}:${ports[0]}`;
}

function configuration(
  port: number,
  zones: readonly Zone[],
  algorithm: string,
  secret: string,
  secondary: boolean,
): string {
  const transfers = secondary ? host : 'none';
  const updates = `update-policy { grant ${keyName} zonesub TXT; };`;
  return [
    'options {',
    '  directory "."; pid-file none; session-keyfile none; reuseport no; max-cache-size 8m;',
    `  listen-on port ${port} { ${host}; }; listen-on-v6 { none; };`,
    `  allow-query { ${host}; }; allow-transfer { ${transfers}; }; notify no;`,
    // Recursion is needed to follow aliases between its zones. The empty root zone below prevents outside queries.
    `  recursion yes; allow-recursion { ${host}; }; dnssec-validation no; empty-zones-enable no;`,
    '};',
    'controls { };',
    `key "${keyName}" { algorithm ${algorithm}; secret "${secret}"; };`,
    'zone "." { type primary; file "root.zone"; };',
    ...zones.map(({ name }) => `zone "${name}" { type primary; file "${name}.zone"; ${updates} };`),
    '',
  ].join('\n');
}

/** An empty root zone, so that names outside the other zones do not exist. */
const rootZone = ['$TTL 60', '@ SOA ns hostmaster 1 3600 600 86400 0', '@ NS ns', 'ns A 127.0.0.1', ''].join(
  '\n',
);

function zoneFile({ records = [] }: Zone, secondary: boolean): string {
  const second = secondary ? ['@ NS ns2', `ns2 A ${secondAddress}`] : [];
  return [rootZone, ...second, ...records, ''].join('\n');
}

async function txtRecords(server: string, name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 5000, tries: 2 });
  resolver.setServers([server]);
  try {
    const records = await resolver.resolveTxt(name);
    return records.map((parts) => parts.join('')).sort();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
    throw error;
  }
}
