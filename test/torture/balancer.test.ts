/**
 * Tests the balancer of the chambers with several nodes of one vault: who gets a request, and what is never sent twice.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { testServer } from '../harness/http/test-server.ts';
import { startBalancer } from './balancer.ts';

type Answer = { readonly status: number; readonly text: string };
type Handle = (incoming: IncomingMessage, response: ServerResponse) => void;

/** Sends its name and the request's body, unless `handle` does something else. */
async function node(t: TestContext, name: string, handle?: Handle) {
  const facts = { ready: true, asked: 0, requests: [] as string[] };
  const server = createServer(async (incoming, response) => {
    if (incoming.url === '/api/v1/ready') {
      facts.asked += 1;
      response.writeHead(facts.ready ? 200 : 503).end();
      return;
    }
    facts.requests.push(`${incoming.method} ${incoming.url}`);
    if (handle !== undefined) return handle(incoming, response);
    incoming.setEncoding('utf8');
    response.end(`${name}:${(await incoming.toArray()).join('')}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.after(close);
  return { facts, close, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function send(url: string, method = 'GET', body = '', agent?: Agent): Promise<Answer> {
  const sent = request(`${url}/api/v1/things?a=%20b`, { method, ...(agent && { agent }) });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.setEncoding('utf8');
  return { status: answer.statusCode ?? 0, text: (await answer.toArray()).join('') };
}

/** No question to a node within the test, apart from the first. */
const onlyOnce = { interval: 3_600_000 };

test('each request goes to the next node, also on one connection', async (t) => {
  const [a, b] = [await node(t, 'a'), await node(t, 'b')];
  const balancer = await startBalancer(t, [a.url, b.url]);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const texts: string[] = [];
  for (const body of ['1', '2', '3', '4']) texts.push((await send(balancer.url, 'POST', body, agent)).text);
  assert.deepEqual(texts, ['a:1', 'b:2', 'a:3', 'b:4']);
  assert.deepEqual(a.facts.requests, Array(2).fill('POST /api/v1/things?a=%20b'));
  assert.deepEqual([...balancer.sent.values()], [2, 2]);
});

test('a node that is not ready gets no requests until it is ready again', async (t) => {
  const [a, b] = [await node(t, 'a'), await node(t, 'b')];
  a.facts.ready = false;
  const balancer = await startBalancer(t, [a.url, b.url], { interval: 5 });
  for (let i = 0; i < 4; i += 1) assert.equal((await send(balancer.url)).text, 'b:');
  b.facts.ready = false;
  while (balancer.ready().length > 0) await sleep(5);
  assert.deepEqual(await send(balancer.url), { status: 503, text: 'no node is ready\n' });
  a.facts.ready = true;
  while (balancer.ready().length === 0) await sleep(5);
  assert.equal((await send(balancer.url)).text, 'a:');
});

test('a request is sent to another node if the first one is stopped', async (t) => {
  const [a, b] = [await node(t, 'a'), await node(t, 'b')];
  const balancer = await startBalancer(t, [a.url, b.url], onlyOnce);
  await a.close();
  assert.deepEqual(await send(balancer.url, 'POST', 'once'), { status: 200, text: 'b:once' });
  assert.deepEqual(balancer.ready(), [b.url]);
  await b.close();
  assert.equal((await send(balancer.url, 'POST', 'never')).status, 503);
});

test('a request that a node received is not sent to another one', async (t) => {
  const cut: Handle = (incoming) => incoming.socket.destroy();
  const silent: Handle = () => undefined;
  const half: Handle = (incoming, response) => {
    response.writeHead(200, { 'content-length': '10' }).write('half');
    incoming.resume().once('end', () => setImmediate(() => response.destroy()));
  };
  const [a, b, c] = [await node(t, 'a', cut), await node(t, 'b', silent), await node(t, 'c', half)];
  const nodes = [a.url, b.url, c.url];
  const balancer = await startBalancer(t, nodes, { ...onlyOnce, patience: 50 });
  assert.deepEqual(await send(balancer.url, 'POST'), { status: 502, text: 'the node broke off\n' });
  assert.deepEqual(await send(balancer.url, 'POST'), { status: 504, text: 'the node does not answer\n' });
  await assert.rejects(send(balancer.url, 'POST'), { code: 'ECONNRESET' });
  assert.deepEqual(
    [a, b, c].map(({ facts }) => facts.requests.length),
    [1, 1, 1],
  );
});

test('a request is aborted at the node when its client disconnects', async (t) => {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const held: Handle = (_, response) => {
    arrive();
    response.once('close', resolve);
  };
  const balancer = await startBalancer(t, [(await node(t, 'a', held)).url], onlyOnce);
  const sent = request(`${balancer.url}/slow`).on('error', () => undefined);
  sent.end();
  await arrived;
  sent.destroy();
  await left;
});

test('a vault gets requests once it is ready', async (t) => {
  const { url, vault } = await testServer(t);
  const balancer = await startBalancer(t, [url], { interval: 5 });
  assert.deepEqual(balancer.ready(), []);
  vault.renewalHeartbeat.beat();
  while (balancer.ready().length === 0) await sleep(5);
  const response = await fetch(`${balancer.url}/api/v1/health`);
  assert.deepEqual(await response.json(), { status: 'ok', version: '0.0.0-test' });
});
