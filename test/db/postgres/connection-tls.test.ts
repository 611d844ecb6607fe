/** TLS to real servers: each sslmode accepts what libpq accepts with it, and nothing weaker. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { encodePem } from '../../../src/crypto/pem.ts';
import type { X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import {
  identifier,
  makeChain,
  makeLeaf,
  type PrivateChain,
  pemFile,
} from '../../harness/ca/private-chain.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { type PostgresServer, postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const encrypted = `select ssl from pg_stat_ssl where pid = pg_backend_pid()`;

function pem({ certificate }: X509Issuer): string {
  return encodePem('CERTIFICATE', certificate);
}

function keyPem({ privateKey }: X509Issuer): string {
  return encodePem('PRIVATE KEY', privateKey.expose());
}

function serverTls({ leaf, intermediate, root }: PrivateChain) {
  return { certificate: pem(leaf) + pem(intermediate), key: keyPem(leaf), clientCa: pem(root) };
}

suite('a server with TLS', needsPostgres(), () => {
  let chain: PrivateChain;
  let server: PostgresServer;
  const ends: (() => unknown)[] = [];
  before(async () => {
    chain = await makeChain({ leaf: { identifiers: ['127.0.0.1'].map(identifier) } });
    server = await startPostgres(
      { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext,
      {
        tls: serverTls(chain),
        access: [
          'local all all trust',
          'hostssl plain all all reject',
          'hostssl proven all all trust clientcert=verify-ca',
          'hostssl all all all trust',
          'hostnossl plain all all trust',
        ],
      },
    );
    for (const name of ['vault', 'plain', 'proven']) await server.createDatabase(name);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  /** Whether the connection is encrypted. Rejects if there is none. */
  async function connect(
    t: TestContext,
    query: Record<string, string>,
    database = 'vault',
    host = '127.0.0.1',
  ) {
    const url = server.url(database, query).replace('127.0.0.1', host);
    const { rows } = await testPool(t, url).read(encrypted);
    return (rows as { ssl: 0 | 1 }[])[0]?.ssl === 1;
  }

  test('is connected with TLS by default, and without TLS on loopback if it rejects TLS', async (t) => {
    assert.equal(await connect(t, {}), true);
    assert.equal(await connect(t, {}, 'plain'), false);
  });

  test('is verified with the CA in sslrootcert', async (t) => {
    const sslrootcert = pemFile(chain.root.certificate);
    for (const sslmode of ['verify-full', 'verify-ca', 'require']) {
      assert.equal(await connect(t, { sslmode, sslrootcert }), true);
    }
  });

  test('is rejected under another host name except with verify-ca', async (t) => {
    const sslrootcert = pemFile(chain.root.certificate);
    const attempt = connect(t, { sslmode: 'verify-full', sslrootcert }, 'vault', 'localhost');
    await assert.rejects(attempt, { name: 'OperatorError', message: /^cannot trust .* certificate is for / });
    assert.equal(await connect(t, { sslmode: 'verify-ca', sslrootcert }, 'vault', 'localhost'), true);
  });

  test('is rejected if another CA signed its certificate or no CA is specified', async (t) => {
    const other = pemFile((await makeChain()).root.certificate);
    const queries: Record<string, string>[] = [
      { sslmode: 'verify-full', sslrootcert: other },
      { sslmode: 'verify-ca', sslrootcert: other },
      { sslmode: 'require', sslrootcert: other },
      { sslmode: 'verify-full' },
      { sslmode: 'verify-ca' },
    ];
    for (const query of queries) {
      await assert.rejects(connect(t, query), {
        name: 'OperatorError',
        message: /issued by an unknown CA|self-signed/,
      });
    }
    assert.equal(await connect(t, { sslmode: 'require' }), true);
  });

  test('is never connected without TLS with require, verify-ca or verify-full', async (t) => {
    const sslrootcert = pemFile(chain.root.certificate);
    for (const sslmode of ['require', 'verify-ca', 'verify-full']) {
      await assert.rejects(connect(t, { sslmode, sslrootcert }, 'plain'), {
        name: 'OperatorError',
        message: /28000/,
      });
    }
    assert.equal(await connect(t, { sslmode: 'disable' }, 'plain'), false);
    await assert.rejects(connect(t, { sslmode: 'disable' }), { name: 'OperatorError', message: /28000/ });
    assert.equal(await connect(t, { sslmode: 'allow' }, 'plain'), false);
    assert.equal(await connect(t, { sslmode: 'allow' }), true);
  });

  test('accepts a client certificate if only the owner can read its key', async (t) => {
    const client = await makeLeaf(chain.root);
    const dir = tempDir(t);
    const files = { sslcert: join(dir, 'client.crt'), sslkey: join(dir, 'client.key') };
    writeFileSync(files.sslcert, pem(client));
    writeFileSync(files.sslkey, keyPem(client), { mode: 0o600 });
    const query = { sslmode: 'require', ...files };
    assert.equal(await connect(t, query, 'proven'), true);
    await assert.rejects(connect(t, { sslmode: 'require' }, 'proven'), {
      name: 'OperatorError',
      message: /28000/,
    });
    chmodSync(files.sslkey, 0o604);
    await assert.rejects(connect(t, query, 'proven'), { hint: `Fix: chmod 600 ${files.sslkey}` });
    await assert.rejects(connect(t, { ...query, sslcert: join(dir, 'missing') }, 'proven'), {
      name: 'OperatorError',
      message: /cannot read the certificate .* no such file/,
    });
  });
});

test('a server without TLS is rejected with sslmode require and verify-full', needsPostgres(), async (t) => {
  const server = await postgresServer();
  await server.createDatabase('without_tls');
  for (const sslmode of ['require', 'verify-full']) {
    await assert.rejects(testPool(t, server.url('without_tls', { sslmode })).read('select 1'), {
      name: 'OperatorError',
      message: /^PostgreSQL does not offer TLS/,
    });
  }
  await testPool(t, server.url('without_tls')).read('select 1');
});
