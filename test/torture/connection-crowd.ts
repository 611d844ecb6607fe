/**
 * A crowd of mostly hostile connections: they never read, pipeline thousands of requests, stop in the middle of one,
 * read slowly, or reconnect all the time. Meanwhile a well-behaved client must get responses, and the server's memory
 * must stay within its bound.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import type { Chance, Finding, Order } from './chamber.ts';
import { limitMemory } from './memory-group.ts';
import { runCommand, startServer } from './running-vault.ts';

const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: vault.test\r\n\r\n`;
const documents = request('/api/v1/openapi.json').repeat(1000);
const scripts = request('/client/install.sh').repeat(1000);
const questions = request('/api/v1/health').repeat(1000);

/** A request with a JSON body. */
const posting = (path: string, body: string, length = `Content-Length: ${Buffer.byteLength(body)}`) =>
  `POST ${path} HTTP/1.1\r\nHost: vault.test\r\nContent-Type: application/json\r\n${length}\r\n\r\n${body}`;
const tinyChunks = posting('/api/v1/session', '1\r\na\r\n'.repeat(16_000), 'Transfer-Encoding: chunked');
const unwantedChunks = tinyChunks.replace('POST /api/v1/session', 'GET /api/v1/health');
const tinyNames = posting(
  `/api/v1/session?${Array.from({ length: 4000 }, (_, index) => index.toString(36)).join('&')}`,
  '{}',
);

/** What a connection of each kind does once it is open. It reconnects when it is cut. */
const kinds: Readonly<Record<string, (socket: Socket, chance: Chance) => void>> = {
  'never reads': (socket, chance) => {
    socket.pause().write(chance.one([documents, scripts, questions]));
  },
  'sends ahead': (socket) => {
    const more = () => socket.writable && socket.write(questions, () => setTimeout(more, 50));
    more();
    socket.resume();
  },
  'stops in the middle': (socket, chance) => {
    const all = `POST /api/v1/setup HTTP/1.1\r\nHost: vault.test\r\nContent-Length: 4000\r\n\r\n${' '.repeat(3000)}`;
    socket.resume().write(all.slice(0, chance.whole(1, all.length)));
  },
  'says its last word at once': (socket) => {
    socket.resume().end(request('/api/v1/openapi.json').repeat(20));
  },
  'reads a little': (socket) => {
    socket.on('data', () => {
      socket.pause();
      setTimeout(() => socket.resume(), 500);
    });
    socket.write(documents);
  },
  'comes and goes': (socket, chance) => {
    socket.resume().write(request('/api/v1/health'));
    // A TLS socket has no reset of its own.
    const canReset = !('encrypted' in socket) && chance.happens(0.5);
    setTimeout(() => (canReset ? socket.resetAndDestroy() : socket.destroy()), 100);
  },
  'sends chunks of one byte': (socket, chance) => {
    socket.resume().write(chance.one([tinyChunks, unwantedChunks]));
  },
  'sends thousands of names': (socket) => {
    socket.resume().write(tinyNames);
  },
  'guesses a password': (socket, chance) => {
    const [name, password] = [`admin${chance.whole(0, 5)}`, 'not the right password'];
    socket.resume().write(posting('/api/v1/session', JSON.stringify({ name, password })));
  },
  'guesses a setup token': (socket, chance) => {
    const token = String(chance.whole(0, 1e9)).padStart(43, 'x');
    const administrator = { token, name: 'ops', password: 'correct horse battery' };
    socket.resume().write(posting('/api/v1/setup', JSON.stringify(administrator)));
  },
  'is silent': (socket) => {
    socket.resume();
  },
};

type Crowd = { readonly leave: () => void; readonly opened: () => number };

/** Keeps this many connections open, evenly split between the kinds; some use TLS if the server does. */
function gather(url: string, count: number, chance: Chance): Crowd {
  const { hostname, port, protocol } = new URL(url);
  const sockets = new Set<Socket>();
  let isOver = false;
  let opened = 0;
  const enter = (behave: (socket: Socket, chance: Chance) => void, own: Chance): void => {
    if (isOver) return;
    opened += 1;
    const place = { host: hostname, port: Number(port) };
    const socket =
      protocol === 'https:' ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
    sockets.add(socket);
    socket
      .once(protocol === 'https:' ? 'secureConnect' : 'connect', () => behave(socket, own))
      // Expected: the server cuts these connections.
      .on('error', () => socket.destroy())
      .once('close', () => {
        sockets.delete(socket);
        setTimeout(() => enter(behave, own), own.whole(20, 200));
      });
  };
  const behaviors = Object.entries(kinds);
  for (let index = 0; index < count; index += 1) {
    const [name, behave] = behaviors[index % behaviors.length] as (typeof behaviors)[number];
    const own = chance.child(`${name} ${index}`);
    // Connect over some seconds, as in a real flood.
    setTimeout(() => enter(behave, own), (index / count) * 2000);
  }
  return {
    opened: () => opened,
    leave: () => {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A client on its own thread, because the crowd keeps this one busy. It sends twenty requests per second. */
const client = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { Agent, request } = require(workerData.url.startsWith('https:') ? 'node:https' : 'node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const ask = () => new Promise((resolve) => {
    const sent = request(workerData.url + '/api/v1/health', { agent, timeout: 30000 }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode)).once('error', () => resolve(0));
    });
    sent.once('error', () => resolve(0)).once('timeout', () => sent.destroy());
    sent.end();
  });
  let isOver = false;
  parentPort.once('message', () => { isOver = true; });
  (async () => {
    const times = [];
    let unanswered = 0;
    let again = 0;
    while (!isOver) {
      const began = performance.now();
      let status = 0;
      // A connection that was closed while idle is fine: clients retry.
      for (let attempt = 0; attempt < 3 && status !== 200; attempt += 1) {
        if (attempt > 0) again += 1;
        status = await ask();
      }
      if (status !== 200) unanswered += 1;
      times.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    agent.destroy();
    parentPort.postMessage({ times, unanswered, again });
  })();
`;

type Answers = { readonly times: readonly number[]; readonly unanswered: number; readonly again: number };

export type CrowdFacts = {
  /** Peak memory in MB. */
  readonly memory: number;
  /** The 99th percentile of the good client's response times, in milliseconds. */
  readonly p99: number;
  readonly asked: number;
  readonly unanswered: number;
  readonly askedAgain: number;
  readonly opened: number;
  /** Audit events of failed sign-ins and setup attempts. */
  readonly refusals: number;
  /** How often the kernel killed it for its memory, or why it was not limited. */
  readonly kills: number | string;
};

/** Runs a crowd against a server over HTTP or HTTPS, and measures memory and a good client. */
export async function crowdFor(
  { program, folder, chance }: Order,
  { scheme, connections, ms }: { scheme: 'http' | 'https'; connections: number; ms: number },
): Promise<CrowdFacts> {
  const place = { program, data: join(folder, `data-${scheme}`), environment: {} };
  const named = ['--name', 'vault', '--domain', 'vault.test'];
  const made = await runCommand(place, ['certificate', 'create', ...named]);
  assert.equal(made.code, 0, made.stderr);
  const options = scheme === 'https' ? ['--tls-certificate', 'vault'] : [];
  const { listening, kill } = startServer(place, options);
  const server = await listening;
  assert.ok(server !== undefined);
  const group = limitMemory(server.pid, groupLimit);
  const worker = new Worker(client, { eval: true, workerData: { url: server.url } });
  const answers = new Promise<Answers>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  let memory = 0;
  const look = () => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    memory = Math.max(memory, Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
  };
  const looking = setInterval(look, 50);
  const crowd = gather(server.url, connections, chance);
  await delay(ms);
  worker.postMessage('enough');
  const { times, unanswered, again } = await answers;
  crowd.leave();
  clearInterval(looking);
  const kills = 'kills' in group ? group.kills() : group.reason;
  await kill();
  if ('remove' in group) group.remove();
  const filter = ['--action', 'session.refuse', '--limit', '1000'];
  const listed = await runCommand(place, ['audit', 'list', '--json', ...filter]);
  assert.equal(listed.code, 0, listed.stderr);
  const sorted = times.toSorted((a, b) => a - b);
  return {
    memory,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    asked: times.length,
    unanswered,
    askedAgain: again,
    opened: crowd.opened(),
    refusals: JSON.parse(listed.stdout).length,
    kills,
  };
}

/** In bytes, half of what the systemd unit allows. */
const groupLimit = 2 ** 30;

/** The memory limit in MB. */
export const memoryBound = 400;

/** A hundred an hour of each kind, and some that count the rest. */
export const refusalsBound = 320;

/** Milliseconds. */
const p99Bound = 250;

/** `--connections` (3000) at a time for `--seconds` (30), over HTTP and then over HTTPS. */
export async function crowd(order: Order): Promise<readonly Finding[]> {
  const connections = order.amount('connections') ?? 3000;
  const ms = (order.amount('seconds') ?? 30) * 1000;
  const findings: Finding[] = [];
  for (const scheme of ['http', 'https'] as const) {
    const facts = await crowdFor(order, { scheme, connections, ms });
    order.say(`${scheme}: ${JSON.stringify(facts)}`);
    assert.ok(facts.kills === 0 || typeof facts.kills === 'string', `${scheme}: killed for its memory`);
    assert.equal(facts.unanswered, 0, `${scheme}: the good client got no response`);
    assert.ok(facts.memory < memoryBound, `${scheme}: ${facts.memory} MB`);
    assert.ok(facts.p99 < p99Bound, `${scheme}: the p99 response time is ${facts.p99} ms`);
    assert.ok(facts.refusals <= refusalsBound, `${scheme}: ${facts.refusals} audit events`);
    findings.push(
      { name: `${scheme}: audit events of refusals`, value: facts.refusals },
      { name: `${scheme}: connections opened`, value: facts.opened },
      { name: `${scheme}: questions of the good client`, value: facts.asked },
      { name: `${scheme}: most memory`, value: facts.memory, unit: 'MB' },
      { name: `${scheme}: 99 of 100 answers within`, value: facts.p99, unit: 'ms' },
    );
  }
  return findings;
}
