/**
 * A vault for the client installer, with a certificate and an API key that its command line created. It runs in the
 * process of the test, and with VAULT_TEST_WHOLE=1 it is the built executable.
 */

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { type Chain, makeChain } from '../ca/openssl-chain.ts';
import { eventually } from '../eventually.ts';
import { serve, vault } from '../processes/vault-process.ts';
import { isWhole } from '../slice.ts';
import { tempDir } from '../temp-dir.ts';
import type { Machine, Tool } from './installer.ts';
import { type Relay, relay } from './relay.ts';
import { serveInside } from './serve-inside.ts';

export type ClientVault = {
  /** Its URL: `http://127.0.0.1:PORT`, or `https:` if the tool supports nothing else. */
  readonly url: string;
  /** An API key with all scopes for all certificates. */
  readonly key: string;
  /** The client options to trust it. */
  readonly trust: readonly string[];
  /** A relay in front of it with the same protocol and `trust` options. */
  readonly relay: () => Promise<Relay>;
  /** Requests a path from the server itself. */
  readonly get: (path: string) => Promise<Response>;
  /** Renews the certificate and waits for the new version. */
  readonly renew: (name?: string) => Promise<void>;
  /** Imports a version. */
  readonly import: (name: string, fullchain: string, key: string) => Promise<void>;
  /** Creates another API key with these options of `vault api-key create`. */
  readonly newKey: (...options: readonly string[]) => Promise<string>;
  /** Runs `vault` on its data directory and returns the output. */
  readonly command: (...args: readonly string[]) => Promise<string>;
  /** The downloads so far, as `artifact version`. */
  readonly downloads: () => string[];
  /** Stops the server. */
  readonly stop: () => Promise<void>;
  /** Creates the usual job: full chain and key of `web`. */
  readonly install: (
    machine: Machine,
    args?: readonly string[],
    launch?: Parameters<Machine['run']>[1],
  ) => ReturnType<Machine['run']>;
};

const shared = mkdtempSync(join(tmpdir(), 'vault-template-'));
after(() => rmSync(shared, { recursive: true, force: true }));

/** Starts the server, which stops when the test ends. For the tool `openssl`, a relay in front of it serves HTTPS. */
export async function clientVault(
  t: Pick<TestContext, 'after'>,
  { certificates = ['web'], tool = 'curl' }: { certificates?: readonly string[]; tool?: Tool } = {},
): Promise<ClientVault> {
  const { dir, key } = await template(certificates);
  const dataDir = tempDir(t);
  cpSync(dir, dataDir, { recursive: true });
  const tls = tool === 'openssl' ? identity() : undefined;
  let direct = '';
  let keys = 0;
  const before = () => relay(t, () => direct, tls && { cert: tls.fullchainPem, key: tls.leaf.keyPem });
  const front = tls && (await before());
  const running = isWhole
    ? await serve(t, dataDir, { args: front ? ['--public-url', front.url] : [] })
    : await serveInside(t, dataDir, front ? { 'public-url': front.url } : {});
  direct = running.url;
  const url = front?.url ?? direct;
  const trust = tls ? ['--ca-file', tls.root.certificatePath] : [];
  return {
    url,
    key,
    trust,
    relay: before,
    get: (path) => fetch(new URL(path, direct)),
    renew: (name = 'web') => renew(direct, key, name),
    import: async (name, fullchain, privateKey) => {
      const args = ['certificate', 'import', '--name', name, '--fullchain', '-'];
      await command(dataDir, args, `${fullchain}${privateKey}`);
    },
    newKey: (...options) => {
      keys += 1;
      return command(dataDir, ['api-key', 'create', '--name', `key-${keys}`, ...options]);
    },
    command: (...args) => command(dataDir, args),
    downloads: () => downloads(dataDir),
    stop: async () => {
      await running.end();
    },
    install: (machine, args = [], launch = {}) =>
      machine.run(['--server', url, ...trust, ...usual(machine), ...args], {
        ...launch,
        environment: { SERVICE_API_KEY: key, ...launch.environment },
      }),
  };
}

/** The options of the usual job without --server. */
export function usual(machine: Machine): string[] {
  const files = ['--file', 'fullchain.crt=tls.crt', '--file', 'private.key=tls.key'];
  return ['--certificate', 'web', ...files, '--destination', machine.destination];
}

type Template = { readonly dir: string; readonly key: string };

const templates = new Map<string, Promise<Template>>();

/**
 * A data directory with these certificates and the key. Created once for all tests of a file; each test gets a copy.
 */
function template(certificates: readonly string[]): Promise<Template> {
  const id = certificates.join();
  const made = templates.get(id) ?? makeTemplate(certificates);
  templates.set(id, made);
  return made;
}

async function makeTemplate(certificates: readonly string[]): Promise<Template> {
  const dir = mkdtempSync(join(shared, 'data-'));
  for (const name of certificates)
    await command(dir, ['certificate', 'create', '--name', name, '--domain', 'www.example.test']);
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'];
  const options = [
    '--name',
    'client',
    '--certificate',
    '*',
    ...scopes.flatMap((scope) => ['--scope', scope]),
  ];
  return { dir, key: await command(dir, ['api-key', 'create', ...options]) };
}

/** Returns the output of a command. Fails with its error output. */
async function command(dataDir: string, args: readonly string[], input?: string): Promise<string> {
  const ended = await vault([...args, '--data-dir', dataDir], input === undefined ? {} : { input });
  assert.equal(ended.code, 0, ended.stderr);
  return ended.stdout.trim();
}

let own: Chain | undefined;

/** The certificate of the HTTPS relays. */
function identity(): Chain {
  own ??= makeChain(mkdtempSync(join(shared, 'tls-')), { names: 'IP:127.0.0.1' });
  return own;
}

/** Reads the audit log in the database, which records a download before the response is sent. */
function downloads(dataDir: string): string[] {
  const db = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true });
  try {
    const events = db.prepare(
      "select detail from audit_events where action = 'certificate.download' order by id",
    );
    const details = events
      .pluck()
      .all()
      .map((detail) => JSON.parse(String(detail)));
    return details.map(({ artifact, version }) => `${artifact} ${version}`);
  } finally {
    db.close();
  }
}

async function renew(url: string, key: string, name: string): Promise<void> {
  const ask = (path: string, method: string) =>
    fetch(new URL(path, url), { method, headers: { Authorization: `Bearer ${key}` } });
  const asked = await ask(`/api/v1/certificates/${encodeURIComponent(name)}/renew`, 'POST');
  assert.equal(asked.status, 202, await asked.text());
  await eventually(`${name} is renewed`, async () => {
    const renewal = await ask(asked.headers.get('location') ?? '', 'GET');
    const { status } = (await renewal.json()) as { status: string };
    assert.notEqual(status, 'failed');
    return status === 'succeeded';
  });
}
