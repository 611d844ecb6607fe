/**
 * The setup for tests of the executable with a real CA: Pebble, BIND with the zones `example.test` and `acme.test`, and
 * a data directory with an issuer `pebble`. Tests need `needsPebble()` and `needsBind()`.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { needsPebble, type Pebble, type PebbleOptions, pebble } from '../ca/pebble.ts';
import type { Feature } from '../ca/pebble-files.ts';
import { type Bind, bind, needsBind } from '../dns/bind.ts';
import type { Skip } from '../processes/missing-program.ts';
import { freePorts } from '../processes/port.ts';
import { type Outcome, type RunningVault, serve, vault } from '../processes/vault-process.ts';
import { tempDir } from '../temp-dir.ts';
import { type AcmeFront, type AcmeFrontOptions, acmeFront } from './front.ts';

export type AcmeVault = {
  /** A folder for the test's own files. */
  readonly dir: string;
  readonly dataDir: string;
  readonly dns: Bind;
  readonly ca: Pebble;
  /** The ports where the CA validates http-01 and tls-alpn-01. */
  readonly httpPort: number;
  readonly tlsPort: number;
  /** Runs a command of the vault until it exits. */
  readonly run: (...args: readonly string[]) => Promise<Outcome>;
  /** Runs a command that must succeed. Returns its output. */
  readonly done: (...args: readonly string[]) => Promise<string>;
  /** Runs a command that must fail. Returns its error output. */
  readonly refused: (...args: readonly string[]) => Promise<string>;
  /** Adds another CA. */
  readonly addIssuer: (name: string, ca: CaPlace, ...args: readonly string[]) => Promise<void>;
  /** Creates a certificate of the issuer `pebble` and waits until it is issued. */
  readonly issue: (name: string, ...args: readonly string[]) => Promise<string>;
  /** Adds the DNS provider `bind` for both zones. */
  readonly addDnsProvider: () => Promise<void>;
  /** `vault serve` that responds to all challenges and uses BIND as resolver. */
  readonly serve: (...args: readonly string[]) => Promise<RunningVault>;
  /** `vault serve` that does not respond to http-01 and tls-alpn-01. */
  readonly serveMute: (...args: readonly string[]) => Promise<RunningVault>;
  /** Runs a query or a change on the database from outside. */
  readonly query: <Row>(sql: string, ...parameters: readonly unknown[]) => Row[];
  /** A client with an API key that can read everything. */
  readonly client: () => Promise<Client>;
};

type CaPlace = Pick<Pebble, 'directoryUrl' | 'caFile'>;

export type Download = {
  readonly status: number;
  readonly body: string;
  /** The value of `Certificate-Version`. */
  readonly version: string;
};

/** Downloads `FILE` or `FILE?version=N` of a certificate from a server. */
export type Client = (server: RunningVault, name: string, file: string) => Promise<Download>;

export type AcmeVaultOptions = PebbleOptions & {
  /** Records of `example.test` besides `*` and `@`, which are 127.0.0.1. */
  readonly records?: readonly string[];
  /** Options of `issuer add`. */
  readonly issuer?: readonly string[];
  /** The directory URL for the vault, such as that of a proxy in front of the CA. */
  readonly front?: (ca: Pebble) => Promise<CaPlace>;
};

/** Options for a test that needs all of this; see `needs()`. */
export function needsAcme(feature?: Feature): Skip {
  const missing = needsPebble(feature);
  return missing.skip === undefined ? needsBind() : missing;
}

/** Starts the servers, which stop when the test ends, and adds the issuer. */
export async function acmeVault(
  t: Pick<TestContext, 'after'>,
  options: AcmeVaultOptions = {},
): Promise<AcmeVault> {
  const { records = [], issuer = [], front, ...pebbleOptions } = options;
  const dns = await bind(t, {
    zones: [
      { name: 'example.test', records: ['* A 127.0.0.1', '@ A 127.0.0.1', ...records] },
      { name: 'acme.test' },
    ],
  });
  const [httpPort = 0, tlsPort = 0] = await freePorts(2);
  const ca = await pebble(t, { dnsServer: dns.server, httpPort, tlsPort, ...pebbleOptions });
  const made = commands(t, { dns, ca, httpPort, tlsPort });
  await made.addIssuer('pebble', (await front?.(ca)) ?? ca, ...issuer);
  return made;
}

/** The same with a proxy in front of the CA. */
export async function frontedVault(
  t: Pick<TestContext, 'after'>,
  { hidesRenewalInfo, ...options }: Omit<AcmeVaultOptions, 'front'> & AcmeFrontOptions = {},
): Promise<{ vault: AcmeVault; front: AcmeFront }> {
  let front: AcmeFront | undefined;
  const vault = await acmeVault(t, {
    ...options,
    front: async (ca) => {
      front = await acmeFront(t, ca, { hidesRenewalInfo });
      return front;
    },
  });
  assert(front);
  return { vault, front };
}

function commands(
  t: Pick<TestContext, 'after'>,
  servers: Pick<AcmeVault, 'dns' | 'ca' | 'httpPort' | 'tlsPort'>,
): AcmeVault {
  const { dns, httpPort, tlsPort } = servers;
  const dir = tempDir(t);
  const dataDir = join(dir, 'data');
  const run = (...args: readonly string[]) => vault([...args, '--data-dir', dataDir]);
  const done = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, `vault ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const serveMute = (...args: readonly string[]) => {
    const level = args.includes('--log-level') ? [] : ['--log-level', 'debug'];
    return serve(t, dataDir, { args: ['--resolver', dns.server, ...level, ...args] });
  };
  return {
    ...servers,
    dir,
    dataDir,
    run,
    done,
    refused: async (...args) => {
      const { code, stderr, stdout } = await run(...args);
      assert.equal(code, 1, `vault ${args.join(' ')}: ${stdout}${stderr}`);
      return stderr;
    },
    addIssuer: async (name, { directoryUrl, caFile }, ...args) => {
      const where = ['--directory', directoryUrl, '--ca-file', caFile, '--email', 'ops@example.test'];
      await done('issuer', 'add', '--name', name, ...where, '--accept-terms', ...args);
    },
    issue: (name, ...args) =>
      done('certificate', 'create', '--name', name, '--issuer', 'pebble', '--wait', ...args),
    addDnsProvider: async () => {
      const file = join(dir, 'dns.json');
      const { server, keyName: key_name, algorithm, secret } = dns;
      writeFileSync(file, JSON.stringify({ server, key_name, algorithm, secret }), { mode: 0o600 });
      const zones = ['--zone', 'example.test', '--zone', 'acme.test'];
      await done(
        'dns-provider',
        'add',
        '--name',
        'bind',
        '--type',
        'rfc2136',
        ...zones,
        '--secret-file',
        file,
      );
    },
    serveMute,
    serve: (...args) =>
      serveMute(
        ...['--acme-http-listen', `127.0.0.1:${httpPort}`],
        ...['--acme-tls-listen', `127.0.0.1:${tlsPort}`, ...args],
      ),
    query: (sql, ...parameters) => query(dataDir, sql, parameters),
    client: async () => {
      const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
      const key = await done('api-key', 'create', '--name', 'client', '--certificate', '*', ...scopes);
      return (server, name, file) => download(server, key, `${name}/${file}`);
    },
  };
}

function query<Row>(dataDir: string, sql: string, parameters: readonly unknown[]): Row[] {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { timeout: 5000 });
  try {
    const statement = database.prepare<unknown[], Row>(sql);
    if (statement.reader) return statement.all(...parameters);
    statement.run(...parameters);
    return [];
  } finally {
    database.close();
  }
}

async function download({ url }: RunningVault, key: string, path: string): Promise<Download> {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/api/v1/certificates/${path}`, { headers });
  const version = response.headers.get('certificate-version') ?? '';
  return { status: response.status, body: await response.text(), version };
}

/**
 * Moves the times of all certificates into the past, as if this many milliseconds had passed. Affects servers that
 * start afterwards.
 */
export function letPass({ query }: AcmeVault, ms: number): void {
  const moved = (...columns: string[]) => columns.map((column) => `${column} = ${column} - ${ms}`).join();
  query(`update certificate_versions set ${moved('not_before', 'not_after', 'created_at')}`);
  query(
    `update certificates set ${moved('next_renewal_at', 'last_attempt_at', 'retry_after', 'ari_check_at')}`,
  );
}
