/** A real vault in its own directory, with real SQLite, real encryption and a test clock. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Log, LogFields } from '../../src/base/log.ts';
import type { World } from '../../src/base/world.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import type { Settings } from '../../src/cli/settings/settings.ts';
import { defaultSessionLimits } from '../../src/domain/access/sessions.ts';
import type { DatabaseNow } from '../../src/domain/nodes/database-clock.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { databaseOf, ensureDatabase, ensureFile } from './database/tested-engine.ts';
import { loopbackAllowed } from './loopback-guard.ts';
import { tempDir } from './temp-dir.ts';
import { TestWorld } from './test-world.ts';

/** The default settings of `vault serve` for a directory, and the database that a test has made for it. */
export function settingsFor(dataDir: string): Settings {
  return {
    dataDir,
    masterKeyFile: join(dataDir, 'master.key'),
    listen: { host: '127.0.0.1', port: 0 },
    publicUrl: undefined,
    workers: undefined,
    ignoredVariables: [],
    backups: undefined,
    keepVersions: 10,
    keepDeleted: 30 * 86_400_000,
    audit: { keepFor: undefined, file: undefined, syslog: undefined, syslogCaFile: undefined, lowSpace: 0 },
    clients: { trustedProxies: [], maxConnections: 2000, apiKeyRate: 0 },
    acmeHttpListen: undefined,
    acmeTlsListen: undefined,
    resolver: undefined,
    acmeDrafts: false,
    // The CAs, name servers and receivers of tests are on loopback.
    allowOutbound: loopbackAllowed,
    endpoints: { allowed: loopbackAllowed, forbidden: [] },
    acmeServer: {
      allowed: [],
      forbidden: [],
      caaIdentities: [],
      termsOfService: undefined,
      ports: { http: 80, tls: 443 },
    },
    proxies: {},
    tls: undefined,
    metricsListen: undefined,
    metricsTokenFile: undefined,
    metricsLabel: undefined,
    database: databaseOf(dataDir),
    databaseConnections: 8,
    databaseSurroundings: { environment: {}, home: undefined },
    noCreate: false,
    oidc: undefined,
    insecureHttp: false,
    sessionLimits: defaultSessionLimits,
    secondApproval: false,
    requireSecondFactor: false,
    logLevel: 'info',
  };
}

/** A log that keeps its lines as JSON. */
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
  /** Closes the vault before the test ends, so that it can be opened again. */
  readonly close: () => Promise<void>;
};

/**
 * Opens the vault in `dataDir`, or a new one. It closes when the test ends. With `databaseNow` it takes the database
 * for one that several nodes share.
 */
export async function testVault<Clock extends World = TestWorld>(
  t: Pick<TestContext, 'after'>,
  {
    dataDir = tempDir(t),
    world = new TestWorld() as World as Clock,
    settings = {},
    databaseNow,
  }: { dataDir?: string; world?: Clock; settings?: Partial<Settings>; databaseNow?: DatabaseNow } = {},
): Promise<TestVault<Clock>> {
  const log = keptLog();
  const database = await ensureDatabase(dataDir);
  if (isOrdinary(settings) && isEmpty(dataDir)) await ensureFile(dataDir, world);
  const opened = await openVault(
    { ...settingsFor(dataDir), database, ...settings },
    world satisfies World,
    'create',
    log,
    undefined,
    { databaseNow },
  );
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= opened.close();
    return closing;
  };
  t.after(close);
  return { vault: opened.vault, world, dataDir, log, close };
}

/** Whether the vault has its master key where it is by default, and as it is by default. */
function isOrdinary(settings: Partial<Settings>): boolean {
  return Object.keys(settings).every((name) => !name.startsWith('masterKey') && name !== 'noCreate');
}

function isEmpty(directory: string): boolean {
  return existsSync(directory) && readdirSync(directory).length === 0;
}
