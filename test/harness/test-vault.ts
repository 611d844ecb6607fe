/** A real vault in a directory of its own: real SQLite, real sealing, only the clock is the test's. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Log, LogFields } from '../../src/base/log.ts';
import type { World } from '../../src/base/world.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import type { Settings } from '../../src/cli/settings/settings.ts';
import { defaultSessionLimits } from '../../src/domain/access/sessions.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { loopbackAllowed } from './loopback-guard.ts';
import { tempDir } from './temp-dir.ts';
import { TestWorld } from './test-world.ts';

/** Settings of `vault serve` for a directory; everything else at its default. */
export function settingsFor(dataDir: string): Settings {
  return {
    dataDir,
    masterKeyFile: join(dataDir, 'master.key'),
    listen: { host: '127.0.0.1', port: 0 },
    publicUrl: undefined,
    workers: 1,
    backups: undefined,
    audit: { keepFor: undefined, file: undefined, syslog: undefined, syslogCaFile: undefined, lowSpace: 0 },
    clients: { trustedProxies: [], maxConnections: 2000, apiKeyRate: 0 },
    acmeHttpListen: undefined,
    acmeTlsListen: undefined,
    resolver: undefined,
    acmeDrafts: false,
    // Tests have their CAs, name servers and receivers here.
    allowOutbound: loopbackAllowed,
    proxies: {},
    tls: undefined,
    metricsListen: undefined,
    metricsTokenFile: undefined,
    insecureHttp: false,
    sessionLimits: defaultSessionLimits,
    logLevel: 'info',
  };
}

/** A log that keeps what it is told, as the JSON it would write. */
export function keptLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  return { lines, ...keptIn(lines, {}) };
}

function keptIn(lines: string[], common: LogFields): Log {
  const keep = (level: string) => (fields: LogFields, message: string) => {
    const { err, ...rest } = fields;
    const error = err !== undefined && { err: String(err) };
    lines.push(JSON.stringify({ level, ...common, ...rest, ...error, message }));
  };
  return {
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    with: (fields) => keptIn(lines, { ...common, ...fields }),
  };
}

export type TestVault<Clock extends World = TestWorld> = {
  readonly vault: Vault;
  readonly world: Clock;
  readonly dataDir: string;
  readonly log: ReturnType<typeof keptLog>;
  /** Closes the vault before the test ends, to open it again. */
  readonly close: () => Promise<void>;
};

/** Opens a vault, a new one unless `dataDir` holds one, and closes it when the test has ended. */
export async function testVault<Clock extends World = TestWorld>(
  t: Pick<TestContext, 'after'>,
  {
    dataDir = tempDir(t),
    world = new TestWorld() as World as Clock,
    settings = {},
  }: { dataDir?: string; world?: Clock; settings?: Partial<Settings> } = {},
): Promise<TestVault<Clock>> {
  const log = keptLog();
  const opened = await openVault(
    { ...settingsFor(dataDir), ...settings },
    world satisfies World,
    'create',
    log,
  );
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= opened.close();
    return closing;
  };
  t.after(close);
  return { vault: opened.vault, world, dataDir, log, close };
}
