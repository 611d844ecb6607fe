/**
 * Creates a vault with many certificates, keys and audit events within seconds. The vault creates one certificate of
 * the private CA and one API key; SQL copies their rows. Each copy has its own sealed private key and its own secret,
 * but the certificate and the private key inside are the same.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { silentLog } from '../src/base/log.ts';
import { realWorld } from '../src/base/world.ts';
import { openVault } from '../src/cli/runtime/open-vault.ts';
import { createToken } from '../src/crypto/secrets/api-key-token.ts';
import { seal } from '../src/crypto/secrets/sealing.ts';
import { tagAllRows } from '../src/db/audit/first-tags.ts';
import { findVersion } from '../src/db/tables/certificates/certificate-versions.ts';
import { createApiKey } from '../src/domain/access/api-keys.ts';
import { localCli, record } from '../src/domain/audit/audit.ts';
import { createCertificate } from '../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../src/domain/inputs.ts';
import { versionKeyOwner } from '../src/domain/sealed-secrets.ts';
import type { Vault } from '../src/domain/vault.ts';
import { openVersionKey } from '../src/domain/versions/versions.ts';
import { settingsFor } from '../test/harness/test-vault.ts';

export type Size = { readonly certificates: number; readonly keys: number; readonly auditEvents: number };

/** The size that most benchmarks use. */
export const defaultSize: Size = { certificates: 1000, keys: 1000, auditEvents: 0 };

export type FilledVault = {
  readonly dataDir: string;
  /** The names of the certificates. */
  readonly names: readonly string[];
  /** Raw API keys. The key at an index is for the certificate at the same index, modulo the number of certificates. */
  readonly keys: readonly string[];
  readonly etags: { readonly fullchain: string; readonly privateKey: string };
  /** The paths of the certificate `127.0.0.1` and its key, for HTTPS. */
  readonly certFile: string;
  readonly keyFile: string;
};

const template = 'www0.example.com';

/** Fills a new vault in this directory. */
export async function fillVault(dataDir: string, size: Size): Promise<FilledVault> {
  const { vault, close } = await openVault(settingsFor(dataDir), realWorld, 'create', silentLog);
  try {
    const wish = { name: template, domains: [template, '127.0.0.1'] };
    await createCertificate(vault, localCli, parseInput(createCertificateInput, wish));
    const scopes = ['certificates:read', 'private_keys:read'];
    const { raw } = await createApiKey(
      vault,
      localCli,
      parseInput(createApiKeyInput, { name: 'k0', scopes, certificates: [template] }),
    );
    const version = await findVersion(vault.db.reader, 1, 1);
    if (version === undefined) throw new Error('no version was issued');
    const pem = openVersionKey(vault, version);
    const certFile = join(dataDir, '..', `${process.pid}.crt`);
    const keyFile = join(dataDir, '..', `${process.pid}.key`);
    writeFileSync(certFile, version.certificate_pem + version.chain_pem);
    writeFileSync(keyFile, pem.expose(), { mode: 0o600 });
    const database = new BetterSqlite3(vault.db.place);
    try {
      const names = [template, ...copyCertificates(vault, database, pem, size.certificates - 1)];
      const keys = [raw.expose(), ...copyKeys(database, size)];
      await vault.db.write(async (writer) => {
        await tagAllRows(writer);
        const event = { actor: localCli, action: 'integrity.row', resource: 'vault' } as const;
        record(writer, event, vault.world.now());
      });
      copyAuditEvents(database, size);
      const etags = { fullchain: version.fullchain_etag, privateKey: version.private_key_etag };
      return { dataDir, names, keys, etags, certFile, keyFile };
    } finally {
      database.close();
    }
  } finally {
    await close();
  }
}

type Pem = ReturnType<typeof openVersionKey>;

function copyCertificates(vault: Vault, database: BetterSqlite3.Database, pem: Pem, count: number): string[] {
  const certificate = copier(database, 'certificates', 1, ['id', 'name']);
  const version = copier(database, 'certificate_versions', 1, ['certificate_id', 'sealed_private_key']);
  const names = Array.from({ length: count }, (_, index) => `www${index + 1}.example.com`);
  database.transaction(() => {
    for (const [index, name] of names.entries()) {
      const id = index + 2;
      certificate(id, name);
      version(id, seal(vault.keyring.current, vault.world, versionKeyOwner(id, 1), pem));
    }
  })();
  return names;
}

function copyKeys(database: BetterSqlite3.Database, { keys, certificates }: Size): string[] {
  const key = copier(database, 'api_keys', 1, ['id', 'name', 'prefix', 'hash']);
  const allow = database.prepare(
    'insert into api_key_certificates (api_key_id, certificate_id) values (?, ?)',
  );
  const raws: string[] = [];
  database.transaction(() => {
    for (let index = 1; index < keys; index += 1) {
      const { prefix, hash, raw } = createToken(realWorld);
      key(index + 1, `k${index}`, prefix, hash);
      allow.run(index + 1, (index % certificates) + 1);
      raws.push(raw.expose());
    }
  })();
  return raws;
}

/** Adds download events, spread evenly over keys and certificates, one second apart and ending now. */
function copyAuditEvents(database: BetterSqlite3.Database, { auditEvents, keys, certificates }: Size): void {
  const copied = ['id', 'at', 'actor', 'action', 'resource'];
  const others = columnsOf(database, 'audit_events').filter((name) => !copied.includes(name));
  database
    .prepare(
      `with recursive n (n) as (select 1 union all select n + 1 from n where n < @auditEvents)
       insert into audit_events (at, actor, action, resource, ${others.join(', ')})
       select at - 1000 * (@auditEvents - n), 'api-key:' || (n % @keys + 1) || ':k' || (n % @keys),
         'certificate.download', 'certificate:www' || (n % @certificates) || '.example.com', ${others.join(', ')}
       from n, (select * from audit_events order by id desc limit 1) where @auditEvents > 0`,
    )
    .run({ auditEvents, keys, certificates });
  database.pragma('wal_checkpoint(truncate)');
}

/** Inserts copies of the row with this id, with the given values in these columns. */
function copier(database: BetterSqlite3.Database, table: string, id: number, changed: readonly string[]) {
  const kept = columnsOf(database, table).filter((name) => name !== 'id' && !changed.includes(name));
  const statement = database.prepare(
    `insert into ${table} (${[...changed, ...kept].join(', ')})
     select ${[...changed.map(() => '?'), ...kept].join(', ')} from ${table} where id = ${id}`,
  );
  return (...values: unknown[]) => void statement.run(...values);
}

function columnsOf(database: BetterSqlite3.Database, table: string): string[] {
  return (database.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
}
