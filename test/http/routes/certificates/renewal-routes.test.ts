/** Asking for a renewal over HTTP: queued once however many ask, seen by its id, and refused where none can be. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../../src/domain/certificates/certificates.ts';
import { claimRenewal } from '../../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../../src/domain/renewals/renewal-run.ts';
import { checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf, importOne, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/certificates/www/renew';

type Queued = { readonly id: number; readonly certificate: string; readonly status: string };

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'www');
  const key = await makeKey(server.vault, { scopes: ['renewals:trigger'] });
  const renew = async (init: RequestInit = {}) => {
    const response = await server.get(path, key.raw, { method: 'POST', ...init });
    const body = (await response.json()) as Queued;
    assert.equal(response.status, 202);
    assert.equal(response.headers.get('Location'), `/api/v1/certificates/www/renewals/${body.id}`);
    return {
      body,
      location: response.headers.get('Location') ?? '',
      requestId: response.headers.get('X-Request-Id'),
    };
  };
  const show = async (location: string) => {
    const response = await server.get(location, key.raw);
    assert.equal(response.status, 200);
    return (await response.json()) as Queued & Record<string, unknown>;
  };
  const run = async () => {
    const claimed = await claimRenewal(server.vault, 'test');
    assert(claimed);
    return { finish: () => runRenewal(server.vault, claimed, new AbortController().signal) };
  };
  return { server, key, renew, show, run };
}

suite('a request to renew', () => {
  test('returns 202 with a Location that shows the renewal through its states', async (t) => {
    const { renew, show, run } = await prepared(t);
    const { body, location } = await renew();
    assert.deepEqual(body, {
      id: body.id,
      certificate: 'www',
      status: 'queued',
      requested_at: '2026-11-21T12:00:00Z',
    });
    assert.deepEqual(await show(location), {
      ...body,
      started_at: null,
      finished_at: null,
      version: null,
      error: null,
    });
    const { finish } = await run();
    assert.equal((await show(location)).status, 'running');
    await finish();
    const { status, version, finished_at } = await show(location);
    assert.deepEqual([status, version, finished_at], ['succeeded', 2, '2026-11-21T12:00:00Z']);
  });

  test('joins the renewal that is queued or running, and begins another once it has ended', async (t) => {
    const { renew, run } = await prepared(t);
    const { body: first } = await renew();
    assert.deepEqual((await renew()).body, first);
    const { finish } = await run();
    const { body: joined } = await renew();
    assert.deepEqual([joined.id, joined.status], [first.id, 'running']);
    await finish();
    assert.notEqual((await renew()).body.id, first.id);
  });

  test('creates one renewal and one event for any number of concurrent requests', async (t) => {
    const { server, key, renew } = await prepared(t);
    const answers = await Promise.all(Array.from({ length: 20 }, () => renew()));
    const [first] = answers;
    for (const { body } of answers) assert.deepEqual(body, first?.body);
    const events = eventsOf(server.dataDir, 'renewal.request');
    assert.equal(events.length, 1);
    const [event] = events;
    assert.deepEqual(
      [event?.actor, event?.resource, event?.detail, event?.ip],
      [key.actor, 'certificate:www', { renewal: first?.body.id }, '127.0.0.1'],
    );
    assert(answers.some(({ requestId }) => requestId === event?.request_id));
  });

  test('may have any body, which is ignored', async (t) => {
    const { server, key, renew } = await prepared(t);
    await renew({ body: '{"force":true}', headers: { 'Content-Type': 'application/json' } });
    await renew({ body: 'not json', headers: { 'Content-Type': 'application/json' } });
    await renew({ body: 'x'.repeat(1_000_000) });
    await renew({ body: '' });
    const chunked = [
      'Transfer-Encoding: chunked',
      `Authorization: Bearer ${key.raw}`,
      'Content-Type: text/plain',
    ];
    const { status } = await server.raw('POST', path, chunked);
    assert.equal(status, 202, 'it is answered before the body has come');
  });

  test('of an imported certificate is 409, and of one that does not exist 404', async (t) => {
    const { server } = await prepared(t);
    await importOne(server.vault, 'imported', { chain: true });
    const key = await makeKey(server.vault);
    for (const [name, status, code] of [
      ['imported', 409, 'not_renewable'],
      ['absent', 404, 'certificate_not_found'],
      ['%20', 404, 'certificate_not_found'],
    ] as const) {
      const response = await server.get(`/api/v1/certificates/${name}/renew`, key.raw, { method: 'POST' });
      assert.deepEqual([response.status, await codeOf(response)], [status, code]);
    }
    assert.deepEqual(eventsOf(server.dataDir, 'renewal.request'), []);
  });

  test('requires the scope renewals:trigger, as does reading a renewal', async (t) => {
    const { server, renew } = await prepared(t);
    const { location } = await renew();
    const reader = await makeKey(server.vault, { scopes: ['certificates:read', 'private_keys:read'] });
    assert.equal((await server.get(path, reader.raw, { method: 'POST' })).status, 403);
    assert.equal((await server.get(location, reader.raw)).status, 403);
  });
});

suite('a renewal', () => {
  test('returns 404 under another certificate, and for unknown or malformed ids', async (t) => {
    const { server, key, renew } = await prepared(t);
    await makeCertificate(server.vault, 'other');
    const { body } = await renew();
    const ids = [
      body.id + 1,
      0,
      -1,
      '1e0',
      '01',
      '%20',
      'abc',
      '9'.repeat(15),
      '9'.repeat(30),
      `${body.id}.0`,
    ];
    const places = [`other/renewals/${body.id}`, ...ids.map((id) => `www/renewals/${id}`)];
    for (const place of places) {
      const response = await server.get(`/api/v1/certificates/${place}`, key.raw);
      assert.deepEqual([response.status, await codeOf(response)], [404, 'not_found'], place);
    }
  });

  test('returns 404 once its certificate is deleted', async (t) => {
    const { server, key, renew } = await prepared(t);
    const { location } = await renew();
    await deleteCertificate(server.vault, localCli, 'www', { force: true });
    const response = await server.get(location, key.raw);
    assert.deepEqual([response.status, await codeOf(response)], [404, 'certificate_not_found']);
  });

  test('reports that the private CA has expired when it fails for this reason', async (t) => {
    const { server, renew, show, run } = await prepared(t);
    const { location } = await renew();
    const { finish } = await run();
    // Past the end of the private CA, nothing can be issued any more.
    server.world.advance(11 * 365 * 86_400_000);
    await finish();
    const { status, error, version } = await show(location);
    assert.deepEqual([status, version], ['failed', null]);
    assert.match(String(error), /^the private CA has expired[^/]*$/);
  });
});
