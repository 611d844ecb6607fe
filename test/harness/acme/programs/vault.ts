/** A vault with HTTPS of its own that serves ACME, for the programs of others. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { visit } from '../../http/https-client.ts';
import { type CommandLine, commandLine } from '../../processes/command-line.ts';
import { type RunningVault, serve } from '../../processes/vault-process.ts';
import type { AcmeProgramHome, AcmeService, Ran } from './program.ts';

export type AcmeServer = Pick<CommandLine, 'data' | 'done' | 'run' | 'json'> & {
  readonly server: RunningVault;
  /** The root of `local-ca`, as PEM. */
  readonly root: string;
  /** Creates an ACME client that may order names like these; its name is the first argument. */
  readonly client: (name: string, ...options: readonly string[]) => Promise<AcmeService>;
  /** The states of the accounts of a client. */
  readonly accounts: (client: string) => unknown[];
};

const accountsOf = `select acme_client_accounts.status from acme_client_accounts
  join acme_clients on acme_clients.id = acme_client_id where name = ?`;

/** Starts the vault. It stops when the test, or the file, ends. */
export async function acmeServer(t: Pick<TestContext, 'after'>): Promise<AcmeServer> {
  const { data, done, run, json, file } = commandLine(t);
  const server = await serve(t, data, { args: ['--tls-certificate', 'vault'] });
  const { body: root } = await visit(`${server.url}/client/ca.crt`);
  const caFile = file(root, 'root.pem');
  return {
    ...{ data, done, run, json, server, root },
    client: async (name, ...options) => {
      const made = await json<{ kid: string; hmac_key: string }>(
        'acme-client',
        'create',
        '--name',
        name,
        ...options,
      );
      const directoryUrl = `${server.url}/acme/local-ca/directory`;
      return { directoryUrl, caFile, kid: made.kid, hmacKey: made.hmac_key };
    },
    accounts: (client) => {
      const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
      try {
        return database.prepare(accountsOf).pluck().all(client);
      } finally {
        database.close();
      }
    },
  };
}

/** Fails with what the program printed unless it reported success. */
export function succeeded({ isDone, output }: Ran): string {
  assert.ok(isDone, output);
  return output;
}

/** Fails unless the program reported failure and printed this. */
export function wasRefused({ isDone, output }: Ran, reason: RegExp): void {
  assert.ok(!isDone, `it was not refused: ${output}`);
  assert.match(output, reason);
}

/** The certificate that the program keeps for the name; fails unless it is for that name alone. */
export function kept(home: AcmeProgramHome, name: string): X509Certificate {
  const certificate = new X509Certificate(readFileSync(home.certificate(name)));
  assert.equal(certificate.subjectAltName, `DNS:${name}`);
  return certificate;
}
