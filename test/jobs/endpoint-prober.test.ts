/** The prober: which endpoints are checked when, how many at a time, and what happens when something fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hour, minute, second } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { removeEndpoint } from '../../src/domain/endpoints/endpoint-changes.ts';
import { runEndpointProber } from '../../src/jobs/endpoint-prober.ts';
import { probeLimit } from '../../src/net/tls-probe.ts';
import { refuse } from '../harness/database/outside-database.ts';
import { scriptedServer, tlsServer } from '../harness/endpoints/tls-servers.ts';
import { endpointAt, identityIn, stored } from '../harness/endpoints/vault-endpoints.ts';
import { eventually } from '../harness/eventually.ts';
import { eventsOf, makeCertificate, renewCertificate } from '../harness/http/fixtures.ts';
import { testVault } from '../harness/test-vault.ts';

const look = 5 * second;

/** A vault with the certificate `web`, a server that presents it, and one that says nothing. */
async function scene(t: TestContext) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  await makeCertificate(vault, 'web', ['www.example.test']);
  const identity = await identityIn(vault, 'web');
  const quick = await tlsServer(t, identity);
  const silent = await scriptedServer(t, identity, async () => 'stay');
  const stop = new AbortController();
  const start = (): Promise<void> => {
    const job = runEndpointProber(vault, stop.signal);
    t.after(async () => {
      stop.abort();
      await job;
    });
    return job;
  };
  /** Lets the prober look for due endpoints once more, which it does before it sleeps again. */
  const looks = async (ms = look) => {
    await world.sleeping(1);
    world.advance(ms);
    await world.sleeping(1);
  };
  const checkedAt = async (id: number) => (await stored(vault, id)).checked_at;
  return { ...opened, quick, silent, stop, start, looks, checkedAt };
}

test('an endpoint is checked immediately, once for each time it is due, and again after its interval', async (t) => {
  const { vault, world, quick, start, looks, checkedAt } = await scene(t);
  const id = await endpointAt(vault, quick.port, { certificate: 'web', interval: '1h' });
  start();
  await eventually('the first check', async () => (await checkedAt(id)) !== null);
  for (let times = 0; times < 6; times += 1) await looks(8 * minute);
  assert.equal(quick.connections(), 1, 'the interval is not over');
  const noted = t.mock.method(vault.keyUse, 'noteEndpoint');
  await looks(18 * minute + look);
  await eventually('the second check has ended', () => noted.mock.callCount() === 1);
  // The check had no news: until it is written, the stored time says that it is due.
  for (let times = 0; times < 5; times += 1) await looks();
  assert.equal(quick.connections(), 2);
  await vault.keyUse.write();
  assert.match((await checkedAt(id)) ?? '', /^2026-11-21T13:06:/);
  world.advance(hour * 1.1);
  await eventually('the third check', () => quick.connections() === 3);
});

test('the endpoints of a renewed certificate are checked a minute later, and no others', async (t) => {
  const { vault, quick, start, looks, checkedAt } = await scene(t);
  const own = await endpointAt(vault, quick.port, { certificate: 'web', interval: '30d' });
  const other = await endpointAt(vault, quick.port, { server_name: 'other.example.test', interval: '30d' });
  start();
  await eventually(
    'both are checked',
    async () => (await checkedAt(own)) !== null && (await checkedAt(other)) !== null,
  );
  await renewCertificate(vault, 'web');
  await looks(50 * second);
  assert.equal(quick.connections(), 2);
  await looks(10 * second);
  await eventually('the check after the renewal', () => quick.connections() === 3);
  await looks();
  assert.equal(quick.connections(), 3);
});

test('at most 32 checks run at a time, and the others follow as soon as one ends', async (t) => {
  const { vault, world, silent, start, looks } = await scene(t);
  for (let at = 0; at < 36; at += 1) {
    await endpointAt(vault, silent.port, { server_name: `n${at}.example.test` });
  }
  start();
  await eventually('32 checks run', () => silent.sockets.length === 32);
  await looks();
  assert.equal(silent.sockets.length, 32, 'the prober looked again and started none');
  world.advance(probeLimit - look);
  await eventually('the last ones run', () => silent.sockets.length === 36);
});

test('a silent server does not delay the checks of others', async (t) => {
  const { vault, silent, quick, start, checkedAt } = await scene(t);
  await endpointAt(vault, silent.port);
  const id = await endpointAt(vault, quick.port, { certificate: 'web' });
  start();
  await eventually('the other one is checked', async () => (await checkedAt(id)) !== null);
  assert.equal((await stored(vault, id)).state, 'current');
});

test('a check that cannot be stored is logged and retried', async (t) => {
  const { vault, world, dataDir, log, quick, start, checkedAt } = await scene(t);
  const id = await endpointAt(vault, quick.port, { certificate: 'web' });
  const full = refuse(dataDir, 'update', 'endpoints', { message: 'no room' });
  start();
  await eventually('the failure is logged', () =>
    log.lines.some((line) => line.includes('failed to check an endpoint')),
  );
  assert.equal(await checkedAt(id), null);
  full.allow();
  await eventually('it is retried', async () => {
    world.advance(look);
    return (await checkedAt(id)) !== null;
  });
});

test('a failed query for due endpoints is logged and retried', async (t) => {
  const { vault, world, log, quick, stop } = await scene(t);
  const id = await endpointAt(vault, quick.port, { certificate: 'web' });
  let troubles = 2;
  const db = new Proxy(vault.db, {
    get: (target, name) => {
      if (name === 'reader' && troubles-- > 0) throw new Error('the disk is gone');
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const job = runEndpointProber({ ...vault, db }, stop.signal);
  await eventually('the check', async () => {
    world.advance(look);
    return (await stored(vault, id)).checked_at !== null;
  });
  assert(log.lines.some((line) => line.includes('failed to query due endpoints')));
  stop.abort();
  await job;
});

test('an endpoint that is removed while its check runs is no error', async (t) => {
  const { vault, world, log, dataDir, silent, start } = await scene(t);
  const id = await endpointAt(vault, silent.port);
  start();
  await eventually('the check runs', () => silent.sockets.length === 1);
  await removeEndpoint(vault, localCli, id, () => undefined);
  world.advance(probeLimit);
  await world.sleeping(1);
  await vault.keyUse.write();
  assert.deepEqual([log.lines, eventsOf(dataDir, 'endpoint.observe')], [[], []]);
});

test('a prober that is stopped ends its checks without waiting for them and records nothing', async (t) => {
  const { vault, log, dataDir, silent, stop, start, checkedAt } = await scene(t);
  const id = await endpointAt(vault, silent.port);
  const job = start();
  await eventually('the check runs', () => silent.sockets.length === 1);
  stop.abort();
  await job;
  await vault.keyUse.write();
  assert.equal(await checkedAt(id), null);
  assert.deepEqual([log.lines, eventsOf(dataDir, 'endpoint.observe')], [[], []]);
});
