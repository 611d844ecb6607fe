/**
 * Failed sign-ins and setup attempts of strangers with many addresses: they must not fill the audit log, nor the disk.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { hour } from '../../../../src/base/duration.ts';
import { refusalsPerHour } from '../../../../src/domain/access/limits/key-limits.ts';
import { checkedServer } from '../../../harness/http/checked.ts';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import { fromPage, goodPassword, makeAdministrator, signIn } from '../../../harness/http/sign-in-fixtures.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { settingsFor } from '../../../harness/test-vault.ts';

const attempts = refusalsPerHour + 50;

/** Sends each request from an address of its own. */
async function prepared(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1', ...options });
  let sent = 0;
  const post = async (path: string, body: object): Promise<number> => {
    sent += 1;
    const headers = { 'X-Forwarded-For': `2001:db8:${sent.toString(16)}::1` };
    return (await server.get(path, undefined, fromPage('POST', body, undefined, { headers }))).status;
  };
  const setUp = () =>
    post('/api/v1/setup', { token: 'x'.repeat(43), name: 'mallory', password: goodPassword });
  const guess = (name: string) => post('/api/v1/session', { name, password: 'a wrong password' });
  const refusals = () => eventsOf(server.dataDir, 'session.refuse');
  return { server, setUp, guess, refusals };
}

suite('failed attempts without credentials, each from another address,', () => {
  test('add a hundred audit events an hour for wrong setup links, then one with a count', async (t) => {
    const { server, setUp, refusals } = await prepared(t);
    for (let n = 0; n < attempts; n += 1) assert.equal(await setUp(), 403);
    assert.equal(refusals().length, refusalsPerHour);
    assert(refusals().every(({ resource, ip }) => resource === 'setup' && ip?.startsWith('2001:db8:')));
    server.world.advance(hour);
    await server.vault.refusals.write('due');
    const last = refusals().at(-1);
    assert.deepEqual(
      [last?.actor, last?.resource, last?.detail.reason, last?.detail.count, last?.ip],
      ['anonymous', 'setup', 'setup link not valid', attempts - refusalsPerHour, null],
    );
    assert.equal(await setUp(), 403);
    assert.equal(refusals().length, refusalsPerHour + 2, 'in the next hour in full again');
  });

  test('add a hundred audit events an hour for all unknown names, then one with a count', async (t) => {
    const { server, guess, refusals } = await prepared(t);
    await makeAdministrator(server.vault, 'alice');
    for (let n = 0; n < attempts; n += 1) assert.equal(await guess(`nobody-${n}`), 401);
    assert.equal(refusals().length, refusalsPerHour);
    assert.equal(await guess('alice'), 401);
    assert.deepEqual(
      [refusals().length, refusals().at(-1)?.resource],
      [refusalsPerHour + 1, 'administrator:alice'],
      'the wrong password of a real administrator is another kind',
    );
    await server.vault.refusals.write('all');
    const last = refusals().at(-1);
    assert.deepEqual(
      [last?.resource, last?.detail.reason, last?.detail.count],
      ['administrator:unknown', 'unknown name', attempts - refusalsPerHour],
    );
    await signIn(server, 'alice');
  });

  test('add no audit event for setup once an administrator exists, and do not delay the sign-in', async (t) => {
    const { server, refusals } = await prepared(t, { trustedProxies: '192.0.2.1' });
    await makeAdministrator(server.vault, 'alice');
    const body = { token: 'x'.repeat(43), name: 'mallory', password: goodPassword };
    for (let n = 0; n < 30; n += 1) {
      const response = await server.get('/api/v1/setup', undefined, fromPage('POST', body));
      assert.equal(response.status, 403);
    }
    assert.deepEqual(refusals(), []);
    await signIn(server, 'alice');
  });

  test('add no audit event while disk space is critical', async (t) => {
    const dataDir = tempDir(t);
    const audit = { ...settingsFor(dataDir).audit, lowSpace: 9e17 };
    const { server, setUp, guess, refusals } = await prepared(t, { dataDir, settings: { audit } });
    assert.deepEqual([await setUp(), await guess('nobody')], [403, 401]);
    await makeAdministrator(server.vault, 'alice');
    assert.equal(await guess('alice'), 401);
    assert.deepEqual(refusals(), []);
    await server.vault.refusals.write('all');
    assert.deepEqual(
      refusals().map(({ resource, detail }) => [resource, detail.count]),
      [
        ['setup', 1],
        ['administrator:unknown', 1],
        ['administrator:alice', 1],
      ],
    );
  });
});
