/** Scans of networks by HTTP: who may start them, and what callers see of what they found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJson } from '../../../src/base/json.ts';
import { storeFinding } from '../../../src/db/tables/scans.ts';
import type { FindingView } from '../../../src/domain/scans/findings.ts';
import type { ScanView } from '../../../src/domain/scans/scans.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { administration } from '../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

const scans = '/api/v1/endpoint-scans';
const findings = '/api/v1/endpoint-findings';

/** What a scan would store of a server that presents this certificate of the vault, or a foreign one. */
async function saw(vault: Vault, scanId: number, host: string, certificateId: number | null): Promise<void> {
  const seen = {
    ...{ scan_id: scanId, host, port: 443, starttls: null },
    ...{ certificate_id: certificateId, version: certificateId === null ? null : 1 },
    ...{ fingerprint_sha256: 'ab'.repeat(32), issuer: 'CN=Other', names: toJson(['intranet.test']) },
    ...{ not_before: 0, not_after: vault.world.now(), chain_pem: '', seen_at: vault.world.now() },
  };
  await vault.db.write((writer) => storeFinding(writer, seen, false));
}

test('an operator starts and ends a scan, which the audit log records', async (t) => {
  const { server, expect } = await administration(t);
  const wanted = { networks: ['10.0.0.0/24', 'fd00::/120'], ports: [443, 636], rate: 20, interval: '7d' };
  const made = await expect<ScanView>(201, 'POST', scans, wanted);
  const shown = {
    ...{ ...wanted, state: 'waiting', done: 0, total: 1024, found: 0 },
    ...{ started_at: null, finished_at: null, created_at: made.created_at, next_run_at: made.created_at },
  };
  assert.deepEqual(made, { id: made.id, ...shown });
  assert.deepEqual(await expect(200, 'GET', scans), [made]);
  assert.deepEqual(await expect(200, 'GET', `${scans}/${made.id}`), made);
  await expect(204, 'DELETE', `${scans}/${made.id}`);
  for (const method of ['GET', 'DELETE']) {
    const { code }: { code: string } = await expect(404, method, `${scans}/${made.id}`);
    assert.equal(code, 'scan_not_found');
  }
  const [created] = eventsOf(server.dataDir, 'scan.create');
  assert.deepEqual(created?.detail, { ...wanted, networks: wanted.networks });
  assert.equal(eventsOf(server.dataDir, 'scan.delete').length, 1);
});

test('a viewer and an operator with a reach cannot start a scan', async (t) => {
  const { server } = await administration(t);
  const viewer = await makeKey(server.vault, { name: 'viewer', role: 'viewer' });
  const confined = await makeKey(server.vault, {
    ...{ name: 'confined', role: 'operator', reach: ['team=web'] },
  });
  for (const { raw } of [viewer, confined]) {
    const response = await server.get(scans, raw, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ networks: ['10.0.0.0/24'] }),
    });
    assert.equal(response.status, 403);
  }
  assert.equal((await server.get(findings, viewer.raw)).status, 200);
  assert.equal((await server.get(findings, confined.raw)).status, 403);
});

test('findings are listed in pages, with the certificate of the vault or without, and tell what is an endpoint', async (t) => {
  const { server, expect, ask } = await administration(t);
  const { vault } = server;
  await makeCertificate(vault, 'web');
  const { id } = await vault.db.reader.selectFrom('certificates').select('id').executeTakeFirstOrThrow();
  const scan = await expect<ScanView>(201, 'POST', scans, { networks: ['10.0.0.0/24'] });
  await saw(vault, scan.id, '10.0.0.1', id);
  await saw(vault, scan.id, '10.0.0.2', null);
  await saw(vault, scan.id, '10.0.0.3', null);
  await saw(vault, scan.id, '10.0.0.2', null);
  await expect(201, 'POST', '/api/v1/endpoints', { address: '10.0.0.3:443' });
  const listed = async (query: string) =>
    (await expect<FindingView[]>(200, 'GET', `${findings}${query}`)).map(
      ({ address, certificate, endpoint }) => [address, certificate, endpoint],
    );
  const [own, other, watched] = [
    ['10.0.0.1:443', 'web', false],
    ['10.0.0.2:443', null, false],
    ['10.0.0.3:443', null, true],
  ];
  assert.deepEqual(await listed(''), [own, other, watched]);
  assert.deepEqual(await listed('?known=true'), [own]);
  assert.deepEqual(await listed(`?known=false&scan=${scan.id}`), [other, watched]);
  assert.deepEqual(await listed('?scan=77'), []);
  const page = await ask('GET', `${findings}?known=false&limit=1`);
  const next = /<[^>]*(\?[^>]*)>; rel="next"/.exec(page.headers.get('Link') ?? '')?.[1] ?? '';
  assert.deepEqual(await listed(next), [watched]);
  const [{ id: first } = assert.fail()] = await expect<FindingView[]>(200, 'GET', findings);
  const whole = await expect<{ chain_pem: string }>(200, 'GET', `${findings}/${first}`);
  assert.equal(whole.chain_pem, '');
  assert.equal((await expect<{ code: string }>(404, 'GET', `${findings}/99`)).code, 'finding_not_found');
});
