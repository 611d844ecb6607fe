/**
 * Jobs with --local-key when something fails: refusals, waiting, interruptions, and a certificate that someone else had
 * signed.
 */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { assertPair, leftovers, machine, type Shell, shells } from '../harness/client/installer.ts';
import type { Answer } from '../harness/client/relay.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { deadly, killedAt } from './kills.ts';
import {
  age,
  certifiedKey,
  chainInVault,
  installLocal,
  keyFile,
  keyFiles,
  publicKey,
  signingKey,
} from './local-keys.ts';
import { inEveryShell } from './places.ts';

const openssl = needs('openssl');

const problem = (status: number, code: string, detail: string): Answer => ({
  status,
  headers: { 'Content-Type': 'application/problem+json' },
  body: JSON.stringify({ status, code, detail }),
});
const renewal = (status: string, error: string | null = null): Answer => ({
  status: 200,
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ id: 7, certificate: 'web', status, requested_at: '2026-11-24T08:00:00Z', error }),
});

const quick = { CERTIFICATE_VAULT_SIGN_SECONDS: '2', CERTIFICATE_VAULT_FETCH_TRIES: '2' };

/** A part of a path, the response to it, and what the job then says. */
const refusals: readonly (readonly [string, Answer, RegExp])[] = [
  ['/certificates/web', { status: 200, body: '{"domains":[]}' }, /has no names for certificate "web"/],
  [
    '/certificates/web',
    { status: 200, body: '{"domains":["a.test","$ENV::HOME"]}' },
    /cannot request: \$ENV::HOME/,
  ],
  [
    '/certificates/web',
    { status: 200, body: '{"domains":["a.test\\nx=y"]}' },
    /cannot request: a\.test\\nx=y/,
  ],
  [
    '/sign',
    problem(404, 'not_found', 'Nothing found at this path.'),
    /this vault does not sign .*\nTry: upgrade the vault/,
  ],
  [
    '/sign',
    problem(403, 'forbidden', 'This API key lacks the scope certificates:sign.'),
    /403: .*lacks the scope[^\n]*\nFix: /,
  ],
  [
    '/sign',
    problem(400, 'invalid_request', 'The key is too short.'),
    /400: the vault rejected .*: The key is too short/,
  ],
  [
    '/sign',
    problem(409, 'not_renewable', 'It was imported.'),
    /409: the vault cannot sign .*: It was imported/,
  ],
  ['/sign', problem(503, 'unavailable', 'Busy.'), /unexpected status 503: Busy/],
  ['/sign', { status: 202, body: '[]' }, /not a response of the vault: no renewal/],
  ['/sign', { status: 202, body: '{"id":"../x"}' }, /not a response of the vault: no renewal/],
  ['/sign', { status: 200, body: '{"id":{"id":["a"]}' }, /unexpected status 200/],
  ['/sign', 'truncated', /the connection closed after|closed the connection|unexpected|read/i],
  [
    '/renewals/',
    renewal('failed', 'www.example.test: \\"CAA\\" forbids it'),
    /failed to issue the certificate: .*forbids it/,
  ],
  [
    '/renewals/',
    renewal('queued'),
    /has not issued the certificate within 2 seconds; the next run continues/,
  ],
  ['/renewals/', renewal('strange'), /not a response of the vault: no renewal/],
  ['/renewals/', problem(404, 'not_found', 'Nothing.'), /404: /],
];

test(
  'a failed renewal keeps the private key and reports the reason, and the next run reuses the new key',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const server = await vault.relay();
    const installed = await installLocal(vault, client, [], { url: server.url });
    assert.equal(installed.code, 0, installed.stderr);
    age(client);
    const [crt, key] = [client.file('tls.crt'), client.file('tls.key')];
    let next = '';
    for (const [part, answer, message] of refusals) {
      server.answer = (path) =>
        path.endsWith(part) || (part.endsWith('/') && path.includes(part)) ? answer : undefined;
      const run = await client.run(['--run'], { environment: quick });
      assert.equal(run.code, 10, `${part} ${JSON.stringify(answer)}: ${run.stderr}`);
      assert.match(run.stderr, message);
      assert.match(run.stderr, /renewal with a new private key failed/);
      assert(client.file('tls.key') === key);
      if (!part.endsWith('/')) assert.equal(client.file('tls.crt'), crt);
      const status = await client.run(['--status']);
      assert.equal(status.code, 1);
      const kept = readFileSync(keyFile(client, 'next.pem'), 'utf8');
      assert(next === '' || kept === next, 'the next key stays');
      next = kept;
      // The vault got this request, and has certified the next key.
      if (answer === 'truncated') break;
    }
    server.answer = () => undefined;
    const run = await client.run(['--run']);
    assert.equal(run.code, 0, run.stderr);
    assertPair(client);
    assert(next.endsWith(client.file('tls.key')), 'the certificate is for the key of the first request');
    assert.equal((await client.run(['--status'])).code, 0);
  },
);

test(
  'a failed first installation reports the reason, and the same command continues without a new version',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const apiKey = await signingKey(vault);
    for (const [part, answer, message] of refusals.filter((_, index) => index % 3 === 0)) {
      const client = machine(t);
      const server = await vault.relay();
      server.answer = (path) =>
        path.endsWith(part) || (part.endsWith('/') && path.includes(part)) ? answer : undefined;
      const environment = { ...quick, SERVICE_API_KEY: apiKey };
      const failed = await installLocal(vault, client, [], { url: server.url, environment });
      assert.equal(failed.code, 10, failed.stderr);
      assert.match(failed.stderr, message);
      assert.deepEqual([client.jobs(), client.crontab()], [[], '']);
      const isSent = part === '/renewals/';
      assert.equal(
        /the private key that was generated stays in /.test(failed.stderr),
        isSent || (/truncated|503|202|200/.test(JSON.stringify(answer)) && part === '/sign'),
        failed.stderr,
      );
      if (!isSent) continue;
      const versions = await vault.command('certificate', 'show', '--name', 'web', '--json');
      server.answer = () => undefined;
      const again = await installLocal(vault, client, [], { url: server.url, environment });
      assert.equal(again.code, 0, again.stderr);
      assertPair(client);
      assert.equal(
        await vault.command('certificate', 'show', '--name', 'web', '--json'),
        versions,
        'nothing is issued again',
      );
    }
  },
);

test('a job waits for a slow vault with growing pauses', openssl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const server = await vault.relay();
  // The clocks of time limits sleep too, for a second each.
  const real = `PATH="${process.env.PATH}" exec sleep 1`;
  client.fake('sleep', `if [ "$1" = 1 ]; then ${real}; fi; echo "$1" >>"${client.home}/pauses"`);
  let polls = 0;
  server.answer = (path) => (path.includes('/renewals/') && ++polls < 9 ? renewal('running') : undefined);
  const { code, stderr } = await installLocal(vault, client, [], { url: server.url });
  assert.equal(code, 0, stderr);
  const pauses = readFileSync(join(client.home, 'pauses'), 'utf8').split('\n').map(Number);
  assert.deepEqual(
    pauses.filter((pause) => pause > 1),
    [2, 4, 8, 16, 30, 30, 30, 30],
  );
});

test(
  'a machine stops replacing the key of another machine for the same certificate after 3 requests',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const [one, two] = [machine(t), machine(t)];
    assert.equal((await installLocal(vault, one)).code, 0);
    for (const turn of [1, 3]) {
      // The second turn is left out.
      if (turn === 3) writeFileSync(keyFile(one, 'taken'), `${readFileSync(keyFile(one, 'taken'), 'utf8')}x`);
      if (turn === 1) assert.equal((await installLocal(vault, two)).code, 0);
      else assert.equal((await two.run(['--run'])).code, 0);
      const run = await one.run(['--run']);
      assert.equal(run.code, 0, run.stderr);
      assert.match(
        run.stderr,
        /version \d+\) is for the private key of someone else.*requesting a certificate for this machine again/,
      );
      assert.equal(certifiedKey(await chainInVault(vault)), publicKey(one));
      assertPair(one);
    }
    assert.equal((await two.run(['--run'])).code, 0);
    const before = [one.file('tls.crt'), one.file('tls.key'), await chainInVault(vault)];
    const refused = await one.run(['--run']);
    assert.equal(refused.code, 11, refused.stderr);
    assert.match(
      refused.stderr,
      /3 times already; nothing was changed\nFix: use --local-key on one machine per certificate/,
    );
    assert.deepEqual([one.file('tls.crt'), one.file('tls.key'), await chainInVault(vault)], before);
    assert.equal((await one.run(['--status'])).code, 1);
    assert.equal((await two.run(['--run'])).code, 0, 'the other machine has the certificate');
    const again = await installLocal(vault, one);
    assert.equal(again.code, 0, again.stderr);
    assertPair(one);
  },
);

test('a certificate for another key that the vault issues meanwhile is not installed', openssl, async (t) => {
  const vault = await clientVault(t);
  const [one, two] = [machine(t), machine(t)];
  const server = await vault.relay();
  assert.equal((await installLocal(vault, one, [], { url: server.url })).code, 0);
  assert.equal((await installLocal(vault, two)).code, 0);
  const before = [one.file('tls.crt'), one.file('tls.key')];
  const done = { status: 202, body: '{"id":1}' };
  server.answer = (path) =>
    path.endsWith('/sign') ? done : path.includes('/renewals/') ? renewal('succeeded') : undefined;
  server.seen.length = 0;
  const run = await one.run(['--run']);
  assert.equal(run.code, 10, run.stderr);
  assert.match(run.stderr, /the vault issued version \d+, but not for the key of this request/);
  assert.deepEqual([one.file('tls.crt'), one.file('tls.key')], before);
  assert.equal(server.seen.filter(({ path }) => path.endsWith('/sign')).length, 2);
});

/** The shells take turns, so that each step runs in one of them. */
function isTurn(shell: Shell, step: number): boolean {
  const order: readonly Shell[] = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  return step % order.length === order.indexOf(shell);
}

async function killedRenewals(t: TestContext, shell: Shell): Promise<void> {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  deadly(client, ['mv', 'rm', 'curl']);
  const installed = await installLocal(vault, client);
  assert.equal(installed.code, 0, installed.stderr);
  const seen = new Set<string>();
  for (let step = 1; ; step += 1) {
    if (!isTurn(shell, step)) continue;
    age(client);
    const before = publicKey(client);
    if (!(await killedAt(client, step, shell, ['--run']))) break;
    assertPair(client);
    // A key that the vault has a certificate for is on this machine.
    const certified = certifiedKey(await chainInVault(vault));
    seen.add(certified === before ? 'old' : publicKey(client) === before ? 'issued' : 'new');
    const next = await client.run(['--run']);
    assert.equal(next.code, 0, `after step ${step}: ${next.stderr}`);
    assert.doesNotMatch(next.stderr, /someone else/, `step ${step}`);
    assertPair(client);
    assert.notEqual(publicKey(client), before, `step ${step}`);
    if (certified !== before) assert.equal(publicKey(client), certified, `step ${step}: not issued again`);
    assert.deepEqual(keyFiles(client), ['current.pem', 'fullchain', 'fullchain.pem'], `step ${step}`);
    assert.deepEqual(leftovers(client), [], `step ${step}`);
  }
  assert.deepEqual([...seen], ['old', 'issued', 'new']);
}

inEveryShell(
  'a renewal with a new key that is killed at any step is completed by the next run',
  killedRenewals,
);

test(
  'the same command completes an installation that was killed at any step, with one key',
  openssl,
  async (t) => {
    const vault = await clientVault(t);
    const environment = { SERVICE_API_KEY: await signingKey(vault) };
    const client = machine(t);
    deadly(client, ['curl', 'crontab']);
    const args = [
      '--server',
      vault.url,
      '--certificate',
      'web',
      '--destination',
      client.destination,
      '--local-key',
    ];
    const files = [
      '--file',
      'fullchain.crt=tls.crt',
      '--file',
      'private.key=tls.key',
      '--schedule',
      '5 4 * * *',
    ];
    for (let step = 1; ; step += 1) {
      const before = await chainInVault(vault);
      if (!(await killedAt(client, step, 'sh', [...args, ...files], environment.SERVICE_API_KEY))) break;
      const certified = await chainInVault(vault);
      const again = await client.run([...args, ...files], { environment });
      assert.equal(again.code, 0, `after step ${step}: ${again.stderr}`);
      assertPair(client);
      if (certified !== before) assert.equal(publicKey(client), certifiedKey(certified), `step ${step}`);
      assert.equal(client.crontab().split('\n').length, 2);
      for (const part of ['vault', 'tls', 'crontab']) rmSync(join(client.home, part), { recursive: true });
    }
  },
);

test('a job recovers from a power cut that emptied the files of its request', openssl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await installLocal(vault, client)).code, 0);
  const pair = client.file('tls.crt') + client.file('tls.key');
  for (const name of [
    'next.pem',
    'request.pem',
    'request.conf',
    'requested',
    'fullchain',
    'fullchain.pem',
    'taken',
  ])
    writeFileSync(keyFile(client, name), '');
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal(client.file('tls.crt') + client.file('tls.key'), pair);
  age(client);
  const run = await client.run(['--run']);
  assert.equal(run.code, 0, run.stderr);
  assertPair(client);
  assert.notEqual(client.file('tls.crt') + client.file('tls.key'), pair);
});
