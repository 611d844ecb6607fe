/** Endpoints that are real servers: what nginx, HAProxy, Postfix, Dovecot and PostgreSQL serve, found by a vault. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseCertName } from '../../src/base/cert-name.ts';
import { realWorld, type World } from '../../src/base/world.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { importCertificate } from '../../src/domain/certificates/certificate-import.ts';
import {
  asRoot,
  dovecot,
  haproxyDefaults,
  nginx,
  postfix,
  startServer,
  written,
} from '../harness/endpoints/real-servers.ts';
import { stapledChain } from '../harness/endpoints/stapled-chain.ts';
import { checked, endpointAt, identityIn } from '../harness/endpoints/vault-endpoints.ts';
import { eventually } from '../harness/eventually.ts';
import { makeCertificate, renewCertificate } from '../harness/http/fixtures.ts';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { startPostgres } from '../harness/postgres/postgres.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { testVault } from '../harness/test-vault.ts';

const name = 'www.example.test';

/** A vault with the real clock and the certificate `web`, and the files of its current version in a folder. */
async function scene(t: TestContext) {
  const { vault } = await testVault<World>(t, { world: realWorld });
  await makeCertificate(vault, 'web', [name]);
  const dir = tempDir(t);
  const paths = {
    fullchain: join(dir, 'fullchain.crt'),
    key: join(dir, 'private.key'),
    combined: join(dir, 'combined.pem'),
  };
  const install = async () => {
    const { key, cert } = await identityIn(vault, 'web');
    writeFileSync(paths.fullchain, cert);
    writeFileSync(paths.key, key);
    writeFileSync(paths.combined, cert + key);
  };
  await install();
  return { vault, dir, paths, install };
}

test(
  'nginx serves the version that it loaded last, until it is reloaded',
  needs('nginx', ['/usr/sbin']),
  async (t) => {
    const { vault, paths, install } = await scene(t);
    const { ports, pid } = await nginx(t, [
      ...[
        `ssl_certificate ${paths.fullchain};`,
        `ssl_certificate_key ${paths.key};`,
        'ssl_protocols TLSv1.3;',
      ],
    ]);
    const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'web' });
    const first = await checked(vault, id);
    assert.deepEqual(
      [first.state, first.version, first.verifies, first.tls_version],
      ['current', 1, true, 'TLSv1.3'],
    );
    await renewCertificate(vault, 'web');
    await install();
    const { version, current_version } = await checked(vault, id);
    assert.deepEqual(
      [version, current_version],
      [1, 2],
      'the new files are in place, but nginx does not know',
    );
    process.kill(pid, 'SIGHUP');
    await eventually('nginx serves version 2', async () => (await checked(vault, id)).version === 2);
  },
);

test('nginx staples an OCSP response', {
  ...needs('nginx', ['/usr/sbin']),
  ...needs('openssl'),
}, async (t) => {
  const { vault, dir, paths } = await scene(t);
  const { identity, response } = stapledChain(tempDir(t));
  const sources = [{ name: 'bundle.pem', bytes: Buffer.from(identity.cert + identity.key) }];
  await importCertificate(vault, localCli, { name: parseCertName('imported') ?? assert.fail(), sources });
  writeFileSync(paths.combined, identity.cert + identity.key);
  writeFileSync(join(dir, 'ocsp.der'), response);
  const { ports } = await nginx(t, [
    ...[`ssl_certificate ${paths.combined};`, `ssl_certificate_key ${paths.combined};`],
    ...['ssl_stapling on;', `ssl_stapling_file ${join(dir, 'ocsp.der')};`],
  ]);
  const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'imported' });
  const { state, ocsp_stapled } = await checked(vault, id);
  assert.deepEqual([state, ocsp_stapled], ['current', true]);
});

test(
  'HAProxy serves combined.pem by server name, and demands certificates of clients',
  needs('haproxy', ['/usr/sbin']),
  async (t) => {
    const { vault, dir, paths } = await scene(t);
    await makeCertificate(vault, 'other', ['other.example.test']);
    const { key, cert } = await identityIn(vault, 'other');
    const other = written(dir, 'other.pem', [cert + key]);
    const { ports } = await startServer(t, 'haproxy', 2, ([plain, demanding], folder) => {
      const config = written(folder, 'haproxy.cfg', [
        ...haproxyDefaults,
        ...['frontend web', `  bind 127.0.0.1:${plain} ssl crt ${paths.combined} crt ${other}`],
        ...[
          'frontend closed',
          `  bind 127.0.0.1:${demanding} ssl crt ${paths.combined} ca-file ${paths.fullchain} verify required`,
        ],
      ]);
      return ['-db', '-f', config];
    });
    const [plain = 0, demanding = 0] = ports;
    for (const [port, certificate] of [
      [plain, 'web'],
      [plain, 'other'],
      [demanding, 'web'],
    ] as const) {
      const id = await endpointAt(vault, port, { certificate });
      const { state, reason, version } = await checked(vault, id);
      assert.deepEqual([state, reason, version], ['current', null, 1], `${certificate} at ${port}`);
    }
    const wrong = await endpointAt(vault, plain, {
      certificate: 'other',
      server_name: 'unknown.example.test',
    });
    assert.equal((await checked(vault, wrong)).state, 'unknown');
  },
);

/** Its packages for IMAP and POP3 are two. */
const hasPop3 = existsSync('/usr/lib/dovecot/pop3');

test(
  `Dovecot switches to TLS by STARTTLS of IMAP${hasPop3 ? ' and by STLS of POP3' : ''}`,
  asRoot('dovecot'),
  async (t) => {
    const { vault, paths } = await scene(t);
    const { ports } = await dovecot(t, paths, { pop3: hasPop3 });
    for (const [at, starttls] of (hasPop3 ? (['imap', 'pop3'] as const) : (['imap'] as const)).entries()) {
      const id = await endpointAt(vault, ports[at] ?? 0, { certificate: 'web', starttls });
      const { state, reason } = await checked(vault, id);
      assert.deepEqual([state, reason], ['current', null], starttls);
    }
    const direct = await endpointAt(vault, ports[0] ?? 0, { server_name: 'direct.example.test' });
    assert.equal(
      (await checked(vault, direct)).reason,
      'the server does not speak TLS on this port from the first byte',
    );
  },
);

test('Postfix switches to TLS by STARTTLS of SMTP', asRoot('postfix'), async (t) => {
  const { vault, paths } = await scene(t);
  const { ports } = await postfix(t, paths);
  const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'web', starttls: 'smtp' });
  const { state, reason, version } = await checked(vault, id);
  assert.deepEqual([state, reason, version], ['current', null, 1]);
});

test(
  'PostgreSQL switches to TLS by an SSLRequest, and says if it has none',
  needsPostgres('embedded'),
  async (t) => {
    const { vault } = await scene(t);
    const { cert: certificate, key } = await identityIn(vault, 'web');
    const { port } = await startPostgres(t, { tls: { certificate, key } });
    const id = await endpointAt(vault, port, { certificate: 'web', starttls: 'postgres' });
    const { state, reason } = await checked(vault, id);
    assert.deepEqual([state, reason], ['current', null]);
    const plain = await startPostgres(t);
    const without = await endpointAt(vault, plain.port, { certificate: 'web', starttls: 'postgres' });
    assert.equal((await checked(vault, without)).reason, 'the server does not offer TLS');
  },
);
