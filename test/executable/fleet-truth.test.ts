/**
 * A fleet of five hosts, each with a server of Debian and a job of the client installer: the vault names exactly what
 * is broken, on the command line, in the console, in metrics and by one notification each, and then that it is
 * repaired.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { day, hour, minute, second } from '../../src/base/duration.ts';
import { realWorld, type World } from '../../src/base/world.ts';
import { issue } from '../harness/ca/openssl-chain.ts';
import { type Machine, machine } from '../harness/client/installer.ts';
import { serveInside } from '../harness/client/serve-inside.ts';
import { rendered, signIn, visit } from '../harness/console/visit.ts';
import { apache, asRoot, dovecot, haproxy, nginx, postfix } from '../harness/endpoints/real-servers.ts';
import { eventually } from '../harness/eventually.ts';
import { webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { type Outcome, runInside } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** What makes each server load its files again. */
const signals = { nginx: 'HUP', haproxy: 'USR2', dovecot: 'HUP', postfix: 'HUP', apache: 'HUP' } as const;

type Name = keyof typeof signals;

const names = Object.keys(signals) as Name[];

const programs = ['nginx', 'haproxy', 'apache2', 'chromium', 'curl', 'openssl', 'faketime'];

/** Time that passes by itself, and that a test moves: those who would sleep for minutes wake. */
function movableWorld() {
  let moved = 0;
  const wakers = new Set<() => void>();
  const world: World = {
    ...realWorld,
    isSet: true,
    now: () => realWorld.now() + moved,
    sleep: async (ms, signal) => {
      if (ms < minute) return realWorld.sleep(ms, signal);
      const woken = new AbortController();
      const wake = () => woken.abort();
      wakers.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
      if (signal?.aborted === true) wake();
      await realWorld.sleep(ms, woken.signal);
      signal?.removeEventListener('abort', wake);
      wakers.delete(wake);
    },
  };
  const move = (ms: number) => {
    moved += ms;
    for (const wake of [...wakers]) wake();
  };
  return { world, move, moved: () => moved };
}

/** A cable to a port of loopback, which can be cut. */
async function cable(t: TestContext, to: number) {
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    const far = connect({ port: to, host: '127.0.0.1' });
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => open.delete(socket));
    }
    if (isCut) near.destroy();
    near.pipe(far);
    far.pipe(near);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const drop = () => {
    for (const socket of open) socket.destroy();
  };
  t.after(() => {
    server.close();
    drop();
  });
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      drop();
    },
    mend: () => {
      isCut = false;
    },
  };
}

type Listed = { readonly certificate: string; readonly state: string; readonly fingerprint_sha256: string };

type Home = {
  readonly name: string;
  readonly client: Machine;
  readonly files: { readonly fullchain: string; readonly key: string; readonly combined: string };
  /** The command that makes the server load the files again. */
  readonly reload: (command: string) => void;
  readonly install: () => Promise<Outcome>;
  /** One run of the schedule. */
  readonly run: () => Promise<Outcome>;
};

async function scene(t: TestContext) {
  const { world, move, moved } = movableWorld();
  const dataDir = tempDir(t);
  const command = async (...args: readonly string[]) => {
    const ended = await runInside([...args, '--data-dir', dataDir], { world });
    return { ...ended, stdout: ended.stdout.trim() };
  };
  const done = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await command(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const receiver = await webhookReceiver(t);
  await done('notification', 'add', 'webhook', '--channel', 'ops', '--url', receiver.url);
  const token = join(tempDir(t), 'token');
  writeFileSync(token, 'a-token-for-the-metrics\n', { mode: 0o600 });
  const visited = await visit(t, {
    dataDir,
    start: async () => {
      const settings = { 'metrics-token-file': token, 'endpoint-allow': '127.0.0.1' };
      const { url } = await serveInside(t, dataDir, settings, world);
      return { url, pid: process.pid, log: () => '', end: async () => ({ code: 0, signal: null }) };
    },
  });
  const alice = await visited.alice();
  await alice.context.close();

  const home = async (name: string, url = visited.url): Promise<Home> => {
    await done('certificate', 'create', '--name', name, '--domain', 'www.example.test');
    const scopes = ['certificates:read', 'private_keys:read'].flatMap((scope) => ['--scope', scope]);
    const key = await done('api-key', 'create', '--name', name, '--certificate', name, ...scopes);
    const client = machine(t);
    client.fake('uname', `case $1 in -n) echo ${name}1 ;; *) exec /usr/bin/env -i /bin/uname "$@" ;; esac`);
    const files = ['fullchain.crt', 'private.key', 'combined.pem'].flatMap((file) => ['--file', file]);
    const through = () => ['faketime', '-f', `+${Math.round(moved() / second)}s`];
    const at = (file: string) => join(client.destination, file);
    return {
      ...{ name, client },
      files: {
        fullchain: at('fullchain.crt'),
        key: at('private.key'),
        combined: at('combined.pem'),
      },
      reload: (line) => client.fake('reload-it', line),
      install: () =>
        client.run(
          [
            ...['--server', url, '--certificate', name, ...files, '--destination', client.destination],
            ...['--reload-command', 'exec reload-it', '--schedule', '17 3 * * *'],
          ],
          { environment: { SERVICE_API_KEY: key } },
        ),
      run: () =>
        client.run(['--run', client.jobs()[0] ?? ''], {
          ...{ script: client.copy(), through: through() },
          environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' },
        }),
    };
  };
  /** Waits until the vault says this. Its clock runs a minute each second, for at most this many minutes. */
  const within = async <T>(minutes: number, look: () => Promise<T>, wanted: T) => {
    let left = minutes;
    let moves = realWorld.elapsed();
    let now: T | undefined;
    const isSaid = async () => {
      now = await look();
      if (isDeepStrictEqual(now, wanted)) return true;
      if (left > 0 && realWorld.elapsed() - moves > second) {
        left -= 1;
        moves = realWorld.elapsed();
        move(minute);
      }
      return false;
    };
    await eventually(() => `${inspect(now)} is not ${inspect(wanted)}`, isSaid);
  };
  const metrics = async () => {
    const headers = { Authorization: 'Bearer a-token-for-the-metrics' };
    const response = await fetch(new URL('/metrics', visited.url), { headers });
    const text = await response.text();
    const lines = text.matchAll(/^certificate_vault_(deployments|endpoints)\{state="(\w+)"\} ([1-9]\d*)$/gm);
    return [...lines].map(([, kind, state, count]) => `${count} ${kind} ${state}`).toSorted();
  };
  const states = async (...args: readonly string[]) => {
    const { stdout } = await command(...args, '--json');
    const rows = JSON.parse(stdout) as Listed[];
    return Object.fromEntries(rows.map(({ certificate, state }) => [certificate, state]));
  };
  /** What the vault says, in each of the four ways but the console. */
  const said = async () => ({
    deployments: await states('fleet', 'status'),
    endpoints: await states('endpoint', 'list'),
    metrics: await metrics(),
    notices: receiver.received.flatMap(({ json }) => changesIn(json.type, json.data)).toSorted(),
  });
  return { ...visited, move, done, command, home, within, said };
}

/** The changes in a notice; what it is about if it is of another kind. */
function changesIn(type: string, data: Record<string, unknown>): string[] {
  const [kind = ''] = type.split('.');
  const changes = data[`${kind}s`] as { certificate: string; state: string }[] | undefined;
  return changes?.map(({ certificate, state }) => `${certificate} ${kind} ${state}`) ?? [type];
}

function succeeded({ name }: Home, { code, stderr }: Outcome): void {
  assert.equal(code, 0, `${name}: ${stderr}`);
}

/** The first cells of each row of a table. */
async function rowsOf(page: Page, table: string, columns: number): Promise<string[][]> {
  await page.getByRole('table', { name: table }).waitFor();
  await rendered(page);
  const rows = await page.getByRole('table', { name: table }).locator('tbody tr').all();
  return Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator('th, td').allInnerTexts();
      return cells.slice(0, columns).map((text) => text.replaceAll(/\s*\n\s*/g, ' | '));
    }),
  );
}

const skips = [
  ...programs.map((program) => needs(program, ['/usr/sbin'])),
  asRoot('dovecot'),
  asRoot('postfix'),
];
const skip = skips.find((one) => one.skip !== undefined) ?? {};

test(
  'of five hosts with four faults the vault names exactly the four, and then that they are repaired',
  skip,
  async (t) => {
    const { url, visitor, move, done, command, home, within, said } = await scene(t);
    const line = await cable(t, Number(new URL(url).port));
    const homes = {
      nginx: await home('nginx'),
      haproxy: await home('haproxy'),
      dovecot: await home('dovecot'),
      postfix: await home('postfix', `http://127.0.0.1:${line.port}`),
      apache: await home('apache'),
    };
    const all = Object.values(homes);
    for (const one of all) {
      one.reload('exit 0');
      succeeded(one, await one.install());
    }
    const { fullchain, key } = homes.nginx.files;
    const servers = {
      nginx: await nginx(t, [`ssl_certificate ${fullchain};`, `ssl_certificate_key ${key};`]),
      haproxy: await haproxy(t, homes.haproxy.files),
      dovecot: await dovecot(t, homes.dovecot.files),
      postfix: await postfix(t, homes.postfix.files),
      apache: await apache(t, homes.apache.files),
    };
    const mail = await cable(t, servers.postfix.ports[0] ?? 0);
    const repair = (name: Name) => homes[name].reload(`kill -${signals[name]} ${servers[name].pid}`);
    for (const name of names) {
      repair(name);
      const port = name === 'postfix' ? mail.port : servers[name].ports[0];
      const by = { dovecot: ['--starttls', 'imap'], postfix: ['--starttls', 'smtp'] }[name as string] ?? [];
      await done('endpoint', 'add', '--address', `127.0.0.1:${port}`, '--certificate', name, ...by);
    }
    const runAll = async (but?: Home) => {
      for (const one of all) if (one !== but) succeeded(one, await one.run());
    };
    const served = async () => {
      const { stdout } = await command('endpoint', 'list', '--json');
      return (JSON.parse(stdout) as Listed[]).map((one) => one.fingerprint_sha256);
    };
    const ok = Object.fromEntries(names.map((name) => [name, 'current']));
    const healthy = {
      ...{ deployments: ok, endpoints: ok, metrics: ['5 deployments current', '5 endpoints current'] },
    };
    await within(0, () => said(), { ...healthy, notices: [] });

    const before = await served();
    for (const name of names) await done('certificate', 'renew', '--wait', '--name', name);
    await runAll();
    const isRenewed = async () => (await served()).every((fingerprint) => !before.includes(fingerprint));
    await within(5, isRenewed, true);
    await within(0, () => said(), { ...healthy, notices: [] });

    // The scheduler of haproxy1 stops: the others run each day.
    for (let days = 1; days <= 2; days += 1) {
      move(day);
      await runAll(homes.haproxy);
    }
    move(2 * hour);
    // For an hour after a jump of the clock the vault waits for reports: it may have been off.
    move(hour);
    const silent = { ...ok, haproxy: 'silent' };
    const notices = ['haproxy deployment silent'];
    await within(10, () => said(), {
      ...{ deployments: silent, endpoints: ok, notices },
      metrics: ['1 deployments silent', '4 deployments current', '5 endpoints current'],
    });

    // The reload of nginx1 breaks, somebody replaces the files of dovecot1, and the network of postfix1 is cut.
    homes.nginx.reload('echo "nginx: configuration file test failed"; exit 1');
    for (const name of ['nginx', 'postfix']) await done('certificate', 'renew', '--wait', '--name', name);
    assert.equal((await homes.nginx.run()).code, 13);
    const other = issue(tempDir(t), 'other', { names: 'DNS:www.example.test' });
    writeFileSync(homes.dovecot.files.fullchain, other.certificatePem);
    writeFileSync(homes.dovecot.files.key, other.keyPem);
    process.kill(servers.dovecot.pid, 'SIGHUP');
    line.cut();
    mail.cut();
    assert.notEqual((await homes.postfix.run()).code, 0);
    move(hour);
    notices.push('dovecot endpoint unknown', 'nginx deployment failing', 'postfix endpoint unreachable');
    await within(10, () => said(), {
      deployments: { ...silent, nginx: 'failing' },
      endpoints: { ...ok, dovecot: 'unknown', postfix: 'unreachable' },
      metrics: [
        ...['1 deployments failing', '1 deployments silent', '1 endpoints unknown'],
        ...['1 endpoints unreachable', '3 deployments current', '3 endpoints current'],
      ],
      notices: notices.toSorted(),
    });
    assert.equal((await command('fleet', 'status')).code, 1);
    const { page, context } = await visitor();
    await page.goto('/fleet');
    await signIn(page);
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [
      ['nginx1', 'failing', '1 failing'],
      ['haproxy1', 'silent', '1 silent'],
      ...['apache1', 'dovecot1', 'postfix1'].map((host) => [host, 'current', '1 current']),
    ]);
    await page.getByRole('tab', { name: 'Endpoints' }).click();
    const listed = (await rowsOf(page, 'Endpoints', 3)).map(
      ([, state, certificate]) => `${certificate}: ${state}`,
    );
    assert.deepEqual(listed.toSorted(), [
      ...['apache: current', 'dovecot: unknown | Not a version of certificate dovecot', 'haproxy: current'],
      'nginx: current | New version not served yet',
      'postfix: unreachable | The server closed the connection',
    ]);
    await context.close();

    // Repaired, the vault says it once, and says no more.
    repair('nginx');
    line.mend();
    mail.mend();
    await runAll();
    move(hour);
    notices.push('dovecot endpoint current', 'haproxy deployment current');
    notices.push('nginx deployment current', 'postfix endpoint current');
    await within(15, () => said(), { ...healthy, notices: notices.toSorted() });
    move(2 * hour);
    await within(5, isRenewed, true);
    move(minute);
    await within(0, () => said(), { ...healthy, notices: notices.toSorted() });
    assert.equal((await command('fleet', 'status')).code, 0);
  },
);
