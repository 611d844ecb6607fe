/** What several workers hold in common: changes and revocations, limits, events and HTTPS, whichever of them is asked. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type Agent, request as httpRequest } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { eventually, patience } from '../../harness/eventually.ts';
import { vault } from '../../harness/vault-process.ts';
import { type Answer, agentsToAll, ask, workersVault } from '../../harness/workers-vault.ts';

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const password = 'a long and quite unusual sentence';

/** Signs in with this password on the connection of this agent. */
function signIn(url: string, typed: string, agent: Agent): Promise<Answer> {
  const body = JSON.stringify({ name: 'ada', password: typed });
  const headers = { 'Content-Type': 'application/json', Origin: url };
  return ask(`${url}/api/v1/session`, { method: 'POST', headers, body, agent });
}

async function withAda(t: TestContext) {
  const place = await workersVault(t);
  const [one, two] = await agentsToAll(t, place.server.url, 2);
  assert.ok(one && two);
  const made = await vault(['admin', 'create', '--name=ada', '--data-dir', place.dir, '--password-stdin'], {
    input: `${password}\n`,
  });
  assert.equal(made.code, 0, made.stderr);
  return { ...place, url: place.server.url, one, two };
}

test('a key that a command revokes is refused by every worker at its next request', async (t) => {
  const { server, done } = await workersVault(t, { workers: 3 });
  const agents = await agentsToAll(t, server.url, 3);
  for (let round = 0; round < 5; round += 1) {
    const key = await done(
      'api-key',
      'create',
      `--name=k${round}`,
      '--scope=certificates:read',
      '--certificate=*',
    );
    const all = () =>
      Promise.all(
        agents.map((agent) =>
          ask(`${server.url}/api/v1/certificates/web/fullchain.pem`, { headers: bearer(key), agent }),
        ),
      );
    assert.deepEqual(new Set((await all()).map(({ status }) => status)), new Set([200]));
    await done('api-key', 'revoke', `--id=${round + 2}`);
    assert.deepEqual(new Set((await all()).map(({ status }) => status)), new Set([401]));
  }
});

test('a revocation by a command is on the CRL of every worker at the next request', async (t) => {
  const { server, done } = await workersVault(t, { workers: 3 });
  const agents = await agentsToAll(t, server.url, 3);
  const all = async (headers: Readonly<Record<string, string>> = {}) =>
    Promise.all(agents.map((agent) => ask(`${server.url}/client/ca-crls.pem`, { headers, agent })));
  const [before] = await all();
  const tag = { 'If-None-Match': String(before?.headers.etag) };
  assert.deepEqual(new Set((await all(tag)).map(({ status }) => status)), new Set([304]));
  await done('certificate', 'revoke', '--name=web');
  const after = await all(tag);
  assert.deepEqual(new Set(after.map(({ status }) => status)), new Set([200]));
  assert.equal(new Set(after.map(({ body }) => body)).size, 1, 'all workers have the same list');
  assert.notEqual(after[0]?.body, before?.body);
});

test('passwords are counted for all workers together, and a session begun at one ends at all', async (t) => {
  const { url, one, two } = await withAda(t);
  const { status, headers } = await signIn(url, password, one);
  assert.equal(status, 201);
  const cookie = String(headers['set-cookie']).split(';')[0] ?? '';
  const session = (agent: Agent, method = 'GET') =>
    ask(`${url}/api/v1/session`, { method, headers: { Cookie: cookie, Origin: url }, agent });
  assert.equal((await session(two)).status, 200);
  assert.equal((await session(two, 'DELETE')).status, 204);
  assert.equal((await session(one)).status, 401);
  // All at once, four at each worker: a slow machine would else be slower than the pauses.
  const agents = (await Promise.all([1, 2, 3, 4].map(() => agentsToAll(t, url, 2)))).flat();
  const answers = await Promise.all(agents.map((agent) => signIn(url, 'wrong wrong wrong', agent)));
  assert.deepEqual(
    answers.map((answer) => answer.status).toSorted(),
    [401, 401, 401, 401, 401, 429, 429, 429],
  );
  const refused = answers.find((answer) => answer.status === 429);
  assert.match(String(refused?.headers['retry-after']), /^\d+$/);
});

test('the requests of a key are counted for all workers together', async (t) => {
  const { server, key } = await workersVault(t, { args: ['--api-key-rate', '20'] });
  const agents = await agentsToAll(t, server.url, 2);
  const statuses: number[] = [];
  const begun = Date.now();
  // What one has counted the other knows a moment later: one after the other until both refuse.
  while (statuses.slice(-2).join() !== '429,429') {
    assert.ok(Date.now() < begun + patience, statuses.join());
    const agent = agents[statuses.length % 2] as Agent;
    const url = `${server.url}/api/v1/certificates/web`;
    statuses.push((await ask(url, { headers: bearer(key), agent })).status);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  const allowed = statuses.filter((status) => status === 200).length;
  // One comes back every three seconds; workers that count alone would allow twenty more.
  const most = 24 + Math.ceil((Date.now() - begun) / 3000);
  assert.ok(allowed >= 20 && allowed <= most, `${allowed} requests of 20 were allowed`);
});

test('refusals after the first hundred of an hour are counted by all workers, and written when they stop', async (t) => {
  const { server, done, query } = await workersVault(t);
  const key = await done('api-key', 'create', '--name=meta', '--scope=certificates:read', '--certificate=*');
  const agents = await agentsToAll(t, server.url, 2);
  const asked = 400;
  for (let n = 0; n < asked; n += 1) {
    const url = `${server.url}/api/v1/certificates/web/private.key`;
    assert.equal((await ask(url, { headers: bearer(key), agent: agents[n % 2] as Agent })).status, 403);
  }
  assert.equal((await server.end()).code, 0);
  const details = query<{ detail: string }>("select detail from audit_events where action = 'access.refuse'");
  const counts = details.map(({ detail }) => (JSON.parse(detail) as { count?: number }).count);
  const inFull = counts.filter((count) => count === undefined).length;
  assert.equal(
    counts.reduce((sum: number, count) => sum + (count ?? 1), 0),
    asked,
    'none is lost',
  );
  // Each worker hears a moment later what the other has recorded; alone, they would have recorded 200.
  assert(inFull >= 100 && inFull < 200, `${inFull} were recorded in full`);
});

test('who listens at one worker hears of what another has changed', async (t) => {
  const { url, one, two } = await withAda(t);
  const { headers } = await signIn(url, password, one);
  const cookie = String(headers['set-cookie']).split(';')[0] ?? '';
  const listening = httpRequest(`${url}/api/v1/events`, { headers: { Cookie: cookie }, agent: one }).end();
  t.after(() => listening.destroy());
  const [events] = await once(listening, 'response');
  let heard = '';
  events.setEncoding('utf8').on('data', (text: string) => {
    heard += text;
  });
  while (!heard.includes('retry')) await once(events, 'data');
  const body = JSON.stringify({ name: 'new', scopes: ['certificates:read'], certificates: ['*'] });
  const made = await ask(`${url}/api/v1/api-keys`, {
    ...{ method: 'POST', body, agent: two },
    headers: { Cookie: cookie, Origin: url, 'Content-Type': 'application/json' },
  });
  assert.equal(made.status, 201, made.body);
  while (!heard.includes('event: change')) await once(events, 'data');
  assert.match(heard, /data: \{"kinds":\["vault"/);
});

test('a session of TLS that one worker began is resumed by any, and a new certificate reaches all', async (t) => {
  const args = ['--tls-certificate', 'vault'];
  const { server, done } = await workersVault(t, { args });
  const port = Number(new URL(server.url).port);
  /** Resolves after one request, so that the ticket has come. */
  const greet = async (options: ConnectionOptions = {}) => {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    let session: Buffer | undefined;
    let text = '';
    socket.on('session', (ticket) => {
      session = ticket;
    });
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await once(socket, 'secureConnect');
    const serial = socket.getPeerX509Certificate()?.serialNumber;
    const isResumed = socket.isSessionReused();
    socket.end('GET /api/v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await once(socket, 'close');
    const worker = /x-request-id: (\w+)-/i.exec(text)?.[1];
    return { session, serial, isResumed, worker };
  };
  const first = await greet();
  const workers = new Set<string | undefined>([first.worker]);
  while (workers.size < 2) {
    const again = await greet({ session: first.session });
    assert.equal(again.isResumed, true);
    workers.add(again.worker);
  }
  await done('certificate', 'renew', '--name=vault', '--wait');
  const renewed = new Set<string | undefined>();
  await eventually('every worker serves the new certificate', async () => {
    const { serial, worker } = await greet();
    if (serial !== first.serial) renewed.add(worker);
    return renewed.size === 2;
  });
});
