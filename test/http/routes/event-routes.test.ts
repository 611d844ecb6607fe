/** Server-sent events: what is told and what not, how one look serves all, and when a stream ends. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  createDeployTargetInput,
  updateDeployTargetInput,
} from '../../../src/domain/deploy-targets/deploy-target-inputs.ts';
import {
  addDeployTarget,
  changeDeployTarget,
  removeDeployTarget,
} from '../../../src/domain/deploy-targets/deploy-targets.ts';
import { addEndpoint, removeEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { checkEndpoint } from '../../../src/domain/endpoints/endpoint-checking.ts';
import { createEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { deleteEnrollment, revokeEnrollment } from '../../../src/domain/enrollments/enrollments.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { makeEnrollment } from '../../harness/http/enrollments.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { makeAdministrator, signIn } from '../../harness/http/sign-in-fixtures.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';
import { written } from '../../harness/notifications/fixtures.ts';

const path = '/api/v1/events';

/** A window of alice's that listens; `rest` is the unread rest. */
async function listen(t: TestContext, server: TestServer, who: RequestInit = alice.init) {
  const closing = new AbortController();
  t.after(() => closing.abort());
  const response = await server.get(path, undefined, { ...who, signal: closing.signal });
  assert.equal(response.status, 200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert(reader);
  let rest = '';
  /** The next block of lines, or undefined where the stream has ended. */
  const next = async (): Promise<string | undefined> => {
    while (!rest.includes('\n\n')) {
      const { value, done } = await reader.read();
      if (done) return undefined;
      rest += value;
    }
    const end = rest.indexOf('\n\n');
    const block = rest.slice(0, end);
    rest = rest.slice(end + 2);
    return block;
  };
  return { response, next, close: () => closing.abort() };
}

async function prepared(t: TestContext, windows = 1) {
  const administrators: Record<string, string> = { ...alice.administrators };
  const server = await testServer(t, { administrators });
  await makeCertificate(server.vault, 'www');
  const opened = [];
  for (let count = 0; count < windows; count += 1) {
    const window = await listen(t, server);
    assert.equal(await window.next(), 'retry: 3000');
    opened.push(window);
  }
  const [first] = opened;
  assert(first);
  // What is changed from now on is a change to what the windows know.
  await server.world.sleeping(1);
  /** Lets a second pass, and so one look. */
  const look = async () => {
    await server.world.sleeping(1);
    server.world.advance(1000);
  };
  return { server, administrators, opened, first, look };
}

const change = (...kinds: string[]) => `event: change\ndata: ${JSON.stringify({ kinds })}`;

suite('the event stream', () => {
  test('has type text/event-stream, and disables caching and proxy buffering', async (t) => {
    const { first } = await prepared(t);
    assert.equal(first.response.headers.get('Content-Type'), 'text/event-stream');
    assert.equal(first.response.headers.get('Cache-Control'), 'no-store');
    assert.equal(first.response.headers.get('X-Accel-Buffering'), 'no');
    assert.equal(first.response.headers.get('Content-Length'), null);
  });

  test('reports changes by any process and renewals, but not downloads', async (t) => {
    const { server, first, look } = await prepared(t);
    const { raw } = await makeKey(server.vault);
    await look();
    assert.equal(await first.next(), change('vault'));
    outside(server.dataDir, (db) => db.exec("update certificates set key_type = 'rsa2048'"));
    await look();
    assert.equal(await first.next(), change('vault'));
    await server.get('/api/v1/certificates/www/fullchain.crt', raw);
    assert.equal(eventsOf(server.dataDir, 'certificate.download').length, 1);
    await look();
    await server.world.sleeping(1);
    const renew = await server.get('/api/v1/certificates/www/renew', raw, { method: 'POST' });
    assert.equal(renew.status, 202);
    await look();
    assert.equal(await first.next(), change('renewals'), 'and nothing before it of the download');
    outside(server.dataDir, (db) => db.exec(`update renewals set steps = '[{"at":1,"text":"x"}]'`));
    await look();
    assert.equal(await first.next(), change('renewals'));
  });

  test('reports that an endpoint was added, removed or has another outcome, but not a check without news', async (t) => {
    const { server, first, look } = await prepared(t);
    const { vault } = server;
    // No server listens there.
    const input = createEndpointInput.parse({ address: '127.0.0.1:1' });
    const check = (id: number) => checkEndpoint(vault, id, new AbortController().signal);
    const id = await addEndpoint(vault, localCli, input);
    await look();
    assert.equal(await first.next(), change('endpoints'));
    await check(id);
    await look();
    assert.equal(await first.next(), change('endpoints'), 'the first check');
    await check(id);
    await look();
    await server.world.sleeping(1);
    await removeEndpoint(vault, localCli, id, async () => undefined);
    await look();
    assert.equal(await first.next(), change('endpoints'), 'and nothing before it of the check without news');
  });

  test('reports that a deploy target was added, failed for the first time and recovered', async (t) => {
    const { server, first, look } = await prepared(t);
    const input = createDeployTargetInput.parse({ name: 'balancer', type: 'webhook', certificates: ['www'] });
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
    await addDeployTarget(server.vault, localCli, input, written({ url: 'https://a.test', secret }));
    for (const what of ['added', 'failed', 'recovered']) {
      if (what !== 'added') {
        const attempts = what === 'failed' ? 1 : 0;
        outside(server.dataDir, (db) =>
          db.prepare('update deploy_target_certificates set attempts = ?').run(attempts),
        );
      }
      await look();
      assert.equal(await first.next(), change('deployments'), what);
    }
  });

  test('reports that the settings or certificates of a deploy target were replaced, and that it was removed', async (t) => {
    const { server, first, look } = await prepared(t);
    const { vault } = server;
    await makeCertificate(vault, 'api');
    await look();
    assert.equal(await first.next(), change('vault'));
    const input = createDeployTargetInput.parse({ name: 'balancer', type: 'webhook', certificates: ['www'] });
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
    const settings = (url: string) => written({ url, secret });
    const onlyApi = updateDeployTargetInput.parse({ certificates: ['api'] });
    const changes = {
      added: () => addDeployTarget(vault, localCli, input, settings('https://a.test')),
      'settings replaced': () =>
        changeDeployTarget(vault, localCli, 'balancer', {}, settings('https://b.test')),
      'certificates selected': () => changeDeployTarget(vault, localCli, 'balancer', onlyApi),
      removed: () => removeDeployTarget(vault, localCli, 'balancer'),
    };
    for (const [what, make] of Object.entries(changes)) {
      await server.world.sleeping(1);
      await make();
      await look();
      assert.equal(await first.next(), change('deployments'), what);
    }
  });

  test('reports that an enrollment was created, revoked without its keys and deleted', async (t) => {
    const { server, first, look } = await prepared(t);
    const { vault } = server;
    const { id } = await makeEnrollment(vault);
    await look();
    assert.equal(await first.next(), change('vault'), 'created');
    await server.world.sleeping(1);
    await revokeEnrollment(vault, localCli, id, { api_keys: false });
    await look();
    assert.equal(await first.next(), change('vault'), 'revoked');
    await server.world.sleeping(1);
    await deleteEnrollment(vault, localCli, id);
    await look();
    assert.equal(await first.next(), change('vault'), 'deleted');
  });

  test('sends a keepalive comment after fifteen seconds', async (t) => {
    const { first, look } = await prepared(t);
    for (let seconds = 0; seconds < 15; seconds += 1) await look();
    assert.equal(await first.next(), ': still here');
  });

  test('needs one query per second for all listeners and none without, and works for a later listener', async (t) => {
    const { server, opened, look } = await prepared(t, 5);
    const commits = t.mock.method(server.vault.db, 'commits');
    await makeKey(server.vault);
    await look();
    for (const window of opened) assert.equal(await window.next(), change('vault'));
    assert.equal(commits.mock.callCount(), 1);
    for (const window of opened) window.close();
    const ended = () => server.log.lines.filter((line) => line.includes('"aborted":true')).length;
    while (ended() < opened.length) await server.world.turn();
    assert.equal(server.world.asleep, 0, 'nothing waits for the next look');
    // A later listener is the only one.
    const { next } = await listen(t, server);
    await next();
    await server.world.sleeping(1);
    await makeKey(server.vault);
    await look();
    assert.equal(await next(), change('vault'));
  });

  test('ends at the next poll after the session has ended', async (t) => {
    const { administrators, first, look } = await prepared(t);
    for (const token of Object.keys(administrators)) delete administrators[token];
    await look();
    assert.equal(await first.next(), undefined);
  });

  test('ends after sign-out, and does not keep an idle session alive', async (t) => {
    const server = await testServer(t);
    await makeAdministrator(server.vault, 'alice');
    for (const how of ['signs out', 'is idle']) {
      const page = await signIn(server, 'alice');
      const listening = await listen(t, server, { headers: { Cookie: page.cookie } });
      assert.equal(await listening.next(), 'retry: 3000');
      await server.world.sleeping(1);
      if (how === 'signs out') {
        assert.equal((await page.send('DELETE', '/api/v1/session')).status, 204);
        server.world.advance(1000);
      } else {
        for (let minutes = 0; minutes < 29; minutes += 1) {
          server.world.advance(60_000);
          assert.equal(await listening.next(), ': still here');
          await server.world.sleeping(1);
        }
        server.world.advance(60_000);
      }
      assert.equal(await listening.next(), undefined, how);
    }
  });

  test('ends immediately when the server stops, and does not delay the shutdown', async (t) => {
    const { server, first } = await prepared(t);
    const stopped = server.stop(60_000);
    assert.equal(await first.next(), undefined);
    await server.world.sleeping(1);
    server.world.advance(20);
    await stopped;
    assert.doesNotMatch(server.log.lines.join('\n'), /"level":"(warn|error)"/);
  });

  test('returns 429 beyond twenty streams per administrator, until one closes', async (t) => {
    const { server, opened } = await prepared(t, 20);
    const refused = await server.get(path, undefined, alice.init);
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, '30']);
    await refused.text();
    opened[0]?.close();
    for (let turns = 0; turns < 10_000; turns += 1) {
      const head = await server.get(path, undefined, { ...alice.init, method: 'HEAD' });
      if (head.status === 200) return;
    }
    assert.fail('a window that is closed leaves no room');
  });

  test('is aborted when the database cannot be read, and the failure is logged', async (t) => {
    const { server, first, look } = await prepared(t);
    t.mock.method(server.vault.db, 'commits', async () => {
      throw new Error('no');
    });
    await look();
    await assert.rejects(first.next());
    assert.match(server.log.lines.join('\n'), /response stream failed/);
  });
});
