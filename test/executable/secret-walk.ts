/** Uses a whole vault through all its interfaces, and searches all output and files for secrets. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import * as owners from '../../src/domain/sealed-secrets.ts';
import { type Launch, type Outcome, type RunningVault, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { settingsFor } from '../harness/test-vault.ts';
import { SecretSearch } from './secret-search.ts';

export class SecretWalk {
  readonly search = new SecretSearch();
  readonly dir: string;
  readonly data: string;
  readonly ran = new Set<string>();
  readonly called = new Set<string>();
  server: RunningVault | undefined;
  cookie = '';
  #files = 0;

  constructor(t: TestContext, dataDir?: string) {
    this.dir = tempDir(t);
    this.data = dataDir ?? join(this.dir, 'data');
  }

  /** Creates a secret and adds it to the search. */
  secret(name: string): string {
    const text = `${name.replaceAll(' ', '-')}-${randomBytes(12).toString('hex')}`;
    this.search.add(name, text);
    return text;
  }

  file(content: string | Buffer): string {
    this.#files += 1;
    const path = join(this.dir, `file-${this.#files}`);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }

  /** Runs a command, which may fail. */
  async run(
    words: readonly string[],
    { mayShow = [], ...launch }: Launch & { readonly mayShow?: readonly string[] } = {},
  ): Promise<Outcome> {
    const environment = { VAULT_DEBUG: '1', VAULT_LOG_LEVEL: 'debug', ...launch.environment };
    const outcome = await vault([...words, '--data-dir', this.data], { ...launch, environment });
    const place = `vault ${words.join(' ')}`;
    this.search.said(`${place} (stdout)`, outcome.stdout, mayShow);
    this.search.said(`${place} (stderr)`, outcome.stderr);
    this.ran.add(words.filter((word) => !word.startsWith('-')).join(' '));
    return outcome;
  }

  async done(words: readonly string[], launch: Parameters<SecretWalk['run']>[1] = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(words, launch);
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  async refused(words: readonly string[], launch: Parameters<SecretWalk['run']>[1] = {}): Promise<void> {
    const { code, stdout } = await this.run(words, launch);
    assert.notEqual(code, 0, `${words.join(' ')}: ${stdout}`);
  }

  /** Sends a request; `init.body` is sent as JSON unless it is a string. */
  async ask(
    method: string,
    path: string,
    {
      body,
      headers = {},
      mayShow = [],
    }: { body?: unknown; headers?: Record<string, string>; mayShow?: readonly string[] } = {},
  ): Promise<{ status: number; text: string; headers: Headers }> {
    const closing = new AbortController();
    const response = await fetch(new URL(path, this.server?.url), {
      method,
      headers: {
        ...(this.cookie !== '' && { Cookie: this.cookie, 'Sec-Fetch-Site': 'same-origin' }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: closing.signal,
    });
    const isStream = response.headers.get('Content-Type') === 'text/event-stream';
    const text = isStream ? '' : await response.text();
    if (isStream) closing.abort();
    const told = `${JSON.stringify([...response.headers])}\n${text}`;
    this.search.said(`${method} ${path.split('?', 1)[0]} → ${response.status}`, told, mayShow);
    this.called.add(`${method} ${path.split('?', 1)[0]}`);
    return { status: response.status, text, headers: response.headers };
  }

  async expect(status: number, ...call: Parameters<SecretWalk['ask']>): Promise<string> {
    const answer = await this.ask(...call);
    assert.equal(answer.status, status, `${call[0]} ${call[1]}: ${answer.text}`);
    return answer.text;
  }

  /** Downloads a private key and adds it to the search; only this response may contain it. */
  async download(apiKey: string, certificate: string, file: string): Promise<void> {
    const name = keyOf(certificate);
    const headers = { Authorization: `Bearer ${apiKey}` };
    const path = `/api/v1/certificates/${certificate}/${file}`;
    this.search.addPrivateKey(name, await this.expect(200, 'GET', path, { headers, mayShow: [name] }));
  }

  /** Adds the session token of a sign-in response, whose cookie may contain it. */
  signedIn(setCookie: string | null, name: string): void {
    const [pair = ''] = (setCookie ?? '').split(';');
    const token = pair.slice(pair.indexOf('=') + 1);
    assert(token.length > 100, 'no session token in the response');
    const [, claims = '', signature = ''] = token.split('.');
    this.search.add(name, token);
    this.search.add(name, signature);
    const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string };
    this.search.addToken(name, jti);
    this.cookie = pair;
  }

  /** Adds the log, and the files while the server runs and after it stopped. */
  async stop(): Promise<void> {
    const { server } = this;
    assert(server);
    const names = this.files('beside the running server');
    assert(names.includes('vault.db-wal'), 'no write-ahead log to search');
    this.search.said('/proc/cmdline', readFileSync(`/proc/${server.pid}/cmdline`));
    this.search.said('/proc/environ', readFileSync(`/proc/${server.pid}/environ`));
    await server.end();
    this.search.said('the log of the server', server.log());
    this.files('after the server');
    this.server = undefined;
    this.cookie = '';
  }

  files(when: string): string[] {
    return this.search.folder(when, this.data, ['master.key']);
  }

  /** Adds all secrets that are sealed in the database, including those never shown. */
  async unseal(): Promise<void> {
    this.search.add('the master key', readFileSync(join(this.data, 'master.key')));
    const { vault: opened, close } = await openVault(settingsFor(this.data), realWorld, 'refuse');
    const { reader } = opened.db;
    const keys: [string, Buffer][] = [];
    const open = (owner: ReturnType<typeof owners.versionKeyOwner>, blob: Buffer | null) =>
      blob === null ? undefined : owners.openFor(opened, owner, blob).expose();
    try {
      const versions = reader
        .selectFrom('certificate_versions')
        .innerJoin('certificates', 'certificates.id', 'certificate_id')
        .select(['name', 'certificate_id', 'version', 'sealed_private_key']);
      for (const row of await versions.execute()) {
        const pem = open(owners.versionKeyOwner(row.certificate_id, row.version), row.sealed_private_key);
        if (pem) this.search.addPrivateKey(keyOf(row.name), `${pem}`);
      }
      const some = (name: string, bytes: Buffer | undefined) => bytes && keys.push([name, bytes]);
      for (const row of await reader.selectFrom('renewals').selectAll().execute())
        some('the key of a renewal', open(owners.renewalKeyOwner(row.id), row.sealed_private_key));
      for (const row of await reader.selectFrom('ca_certificates').selectAll().execute())
        some('the key of the private CA', open(owners.authorityKeyOwner(row.id), row.sealed_private_key));
      for (const row of await reader.selectFrom('ca_requests').selectAll().execute())
        some(
          'the next key of the private CA',
          open(owners.requestedAuthorityKeyOwner(row.issuer_id), row.sealed_private_key),
        );
      for (const row of await reader.selectFrom('acme_accounts').selectAll().execute()) {
        some('the key of an account', open(owners.accountKeyOwner(row.id), row.sealed_private_key));
        some(
          'the next key of an account',
          open(owners.nextAccountKeyOwner(row.id), row.sealed_next_private_key),
        );
      }
      for (const row of await reader.selectFrom('acme_issuers').selectAll().execute()) {
        const bytes = open(owners.externalAccountKeyOwner(row.issuer_id), row.sealed_eab_key);
        if (bytes) this.search.add('the key of an external account', bytes);
      }
      for (const row of await reader.selectFrom('acme_clients').selectAll().execute()) {
        const bytes = open(owners.acmeClientKeyOwner(row.id), row.sealed_hmac_key);
        if (bytes) this.search.add('the key of an ACME client', bytes);
      }
    } finally {
      await close();
    }
    for (const [name, der] of keys) this.search.addPrivateKey(name, der);
  }
}

/** The name of the private keys of a certificate in the search, for all versions. */
export function keyOf(certificate: string): string {
  return `the key of ${certificate}`;
}
