/** `--enroll`: a machine exchanges an enrollment token for an API key of its own, once. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { assertPair, type ClientLaunch, type Machine, machine, modeOf } from '../harness/client/installer.ts';
import type { Answer } from '../harness/client/relay.ts';
import { type ClientVault, clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inEveryPlace, inTurnOfShells, type Place } from './places.ts';

const curl = needs('curl');

const noKey = { environment: { SERVICE_API_KEY: undefined } };

/** A vault with an enrollment, and a machine that has its token in a file. */
async function enrolling(t: TestContext, place: Partial<Place> = {}, options: readonly string[] = []) {
  const vault = await clientVault(t, { ...place, certificates: ['web', 'mail'] });
  const client = machine(t, place);
  const token = await newToken(vault, ...options);
  const file = join(client.home, 'token');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const install = (args: readonly string[] = [], launch: ClientLaunch = {}) =>
    vault.install(client, ['--enroll', file, ...args], {
      ...launch,
      environment: { ...noKey.environment, ...launch.environment },
    });
  return { vault, client, token, file, install };
}

function newToken(vault: ClientVault, ...options: readonly string[]): Promise<string> {
  return vault.command('enrollment', 'create', '--certificate', '*', '--expires-at', '1d', ...options);
}

type Enrolled = {
  readonly id: number;
  readonly uses: number;
  readonly api_keys: readonly { readonly name: string }[];
};

/** The uses of each enrollment, and the names of the keys that it created. */
async function usesIn(vault: ClientVault): Promise<(readonly [number, readonly string[]])[]> {
  const enrollments = JSON.parse(await vault.command('enrollment', 'list', '--json')) as Enrolled[];
  return enrollments.map(({ uses, api_keys }) => [uses, api_keys.map(({ name }) => name)] as const);
}

const keyOf = (client: Machine, job = client.jobs()[0]) =>
  readFileSync(join(client.copy(job), '..', 'api-key'), 'utf8').trim();

/** Nothing of a job, and no text of this token in any output. */
function assertNothing(client: Machine, token: string, output: string): void {
  assert.deepEqual([client.jobs(), client.crontab(), existsSync(client.destination)], [[], '', false]);
  const home = join(client.home, 'vault');
  assert.deepEqual(existsSync(home) ? readdirSync(home) : [], []);
  assert.equal((output + client.syslog()).includes(token), false);
}

const host = hostname();

test('a token that the vault rejects creates no job, and the message says why', curl, async (t) => {
  const { vault, client, token, file, install } = await enrolling(t, {}, ['--name', 'rack-4']);
  const refused = async (reason: RegExp, secret = token) => {
    const { code, stdout, stderr } = await install();
    assert.equal(code, 10, stderr);
    assert.match(stderr, reason);
    assertNothing(client, secret, stdout + stderr);
  };
  await vault.command('enrollment', 'revoke', 'rack-4');
  await refused(
    /no job was created: http.*: 409: the vault rejected the enrollment token: Enrollment token 1 is revoked\. Create another one: vault enrollment create\n/,
  );
  const elsewhere = await newToken(vault, '--allow-ip', '192.0.2.0/24');
  writeFileSync(file, elsewhere);
  await refused(
    /: 403: the vault rejected the enrollment token: This enrollment token may not be used from the address 127\.0\.0\.1\. /,
    elsewhere,
  );
  const used = await newToken(vault);
  writeFileSync(file, used);
  const other = machine(t);
  assert.equal((await vault.install(other, ['--enroll', file], noKey)).code, 0);
  await refused(
    /409: the vault rejected the enrollment token: Enrollment token 3 is used up: 1 of 1 uses\. /,
    used,
  );
  const unknown = `ve_${'x'.repeat(12)}.${'y'.repeat(43)}`;
  writeFileSync(file, unknown);
  await refused(/: 401: the enrollment token is unknown\nFix: on the vault/, unknown);
});

const strange: readonly (readonly [string, Answer, RegExp])[] = [
  [
    'an older vault',
    { status: 404, body: '{}' },
    /: 404: this vault has no enrollments\nTry: upgrade the vault, or use an API key\n/,
  ],
  [
    'a vault of today at which the token has expired',
    {
      status: 409,
      body: '{"status": 409, "code": "enrollment_inactive", "detail": "Enrollment token 1 has expired."}',
    },
    /409: the vault rejected the enrollment token: Enrollment token 1 has expired\n/,
  ],
  [
    'a response without a key',
    { status: 201, body: '{"name": "web"}' },
    /not a response of the vault: no API key\n/,
  ],
  [
    'a key with characters of a shell',
    { status: 201, body: '{"key": "vk_a;b"}' },
    /not a response of the vault: no API key\n/,
  ],
  [
    'a redirect',
    { status: 302, headers: { Location: 'http://127.0.0.1:1/' } },
    /refused to follow a redirect to http:\/\/127\.0\.0\.1:1\//,
  ],
];

test('responses to the exchange that have no key create no job', curl, async (t) => {
  const { vault, client, token, install } = await enrolling(t);
  const relay = await vault.relay();
  for (const [name, answer, reason] of strange) {
    relay.answer = () => answer;
    const { code, stdout, stderr } = await install(['--server', relay.url]);
    assert.equal(code, 10, `${name}: ${stderr}`);
    assert.match(stderr, reason, name);
    assert.equal(`${stdout}${stderr}${client.syslog()}`.includes(token), false, name);
    assert.deepEqual(
      [client.jobs(), client.crontab(), existsSync(client.destination)],
      [[], '', false],
      name,
    );
  }
  assert.deepEqual(await usesIn(vault), [[0, []]]);
});

test(
  'a token comes from a file, standard input or the environment, and never from an argument',
  curl,
  async (t) => {
    const { vault, client, token, file } = await enrolling(t, {}, ['--uses', '9']);
    const install = (args: readonly string[], launch: ClientLaunch = {}) =>
      client.run(['--server', vault.url, ...usual(client), ...args], launch);
    writeFileSync(join(client.home, 'empty'), '');
    writeFileSync(join(client.home, 'key'), vault.key);
    writeFileSync(join(client.home, 'words'), 'a token');
    const misused: readonly (readonly [readonly string[], number, RegExp, ClientLaunch?])[] = [
      [
        ['--enroll', token],
        2,
        /other users of this machine can read a token that is an argument\nTry: --enroll FILE/,
      ],
      [['--enroll', join(client.home, 'none')], 1, /--enroll: cannot read .*none/],
      [['--enroll', join(client.home, 'empty')], 1, /--enroll: .*empty is empty/],
      [['--enroll', '-'], 1, /--enroll: standard input has no token/],
      [['--enroll', join(client.home, 'words')], 2, /the enrollment token is invalid/],
      [['--enroll', join(client.home, 'key')], 2, /is an API key; use it with SERVICE_API_KEY or --key-file/],
      [['--enroll', file, '--key-file', file], 2, /leave out SERVICE_API_KEY and --key-file, or the token/],
      [['--enroll', file], 2, /leave out SERVICE_API_KEY/, { environment: { SERVICE_API_KEY: vault.key } }],
    ];
    for (const [args, code, reason, launch] of misused) {
      const refused = await install(args, launch);
      assert.equal(refused.code, code, refused.stderr);
      assert.match(refused.stderr, reason);
      for (const secret of [token, vault.key]) assertNothing(client, secret, refused.stdout + refused.stderr);
    }
    const dry = await install(['--enroll', file, '--dry-run']);
    assert.equal(dry.code, 0, dry.stderr);
    assert.deepEqual(await usesIn(vault), [[0, []]]);
    const sources: readonly (readonly [readonly string[], ClientLaunch])[] = [
      [['--enroll=-'], { through: ['sh', '-c', `cat '${file}' | exec "$@"`, 'sh'] }],
      [[], { environment: { ENROLLMENT_TOKEN: token } }],
      [['--enroll', file], {}],
    ];
    for (const [args, launch] of sources) {
      const installed = await install(args, launch);
      assert.equal(installed.code, 0, installed.stderr);
      assert.match(keyOf(client), /^vk_/);
      assert.equal((await client.run(['--uninstall'])).code, 0);
    }
    assert.deepEqual(await usesIn(vault), [[3, [host, `${host}-2`, `${host}-3`]]]);
  },
);

/** The program that each tool runs. */
const carriers = {
  curl: 'curl',
  wget: 'wget',
  nc: 'busybox nc',
  'nc.openbsd': 'nc.openbsd',
  openssl: 'openssl',
};

inEveryPlace('a machine enrolls once and has a key of its own', async (t, place) => {
  const { vault, client, token, file, install } = await enrolling(t, place);
  // The arguments of every program are visible to all users.
  const [program = '', real = ''] = [carriers[place.tool].replace(/^.* |\..*$/g, ''), carriers[place.tool]];
  for (const [name, run] of [
    [program, real],
    ...['cat', 'awk', 'sed', 'tr', 'mv', 'printf', 'sh'].map((same) => [same, same]),
  ])
    client.fake(
      name ?? '',
      `echo "$0 $*" >>"${client.home}/arguments"; PATH=${process.env.PATH} exec ${run} "$@"`,
    );
  const installed = await install();
  assert.equal(installed.code, 0, installed.stderr);
  assert(
    installed.stderr.includes(`enrolled: the vault created the API key "${host}" for this machine\n`),
    installed.stderr,
  );
  assertPair(client);
  const key = keyOf(client);
  assert.equal(modeOf(join(client.copy(), '..', 'api-key')), 0o600);
  const all = readdirSync(client.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const having = (text: string) => all.filter((path) => readFileSync(path, 'utf8').includes(text));
  assert(readFileSync(join(client.home, 'arguments'), 'utf8').includes(`/${program} `));
  assert.deepEqual(having(token), [file]);
  assert.deepEqual(having(key), [join(client.copy(), '..', 'api-key')]);
  const again = await install(['--schedule', '17 3 * * *']);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /this machine is enrolled; keeping the API key of job web-\d+\n/);
  assert.equal(keyOf(client), key);
  const mail = await install(['--certificate', 'mail', '--destination', join(client.home, 'mail')]);
  assert.equal(mail.code, 0, mail.stderr);
  assert.deepEqual(
    client.jobs().map((job) => keyOf(client, job)),
    [key, key],
  );
  assert.deepEqual(await usesIn(vault), [[1, [host]]]);
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal((await client.run(['--status'])).code, 0);
  assert.equal(
    (installed.stderr + again.stderr + mail.stderr + client.syslog() + client.crontab()).includes(token),
    false,
  );
  assert.deepEqual(readdirSync(join(client.home, 'vault', 'state')), client.jobs());
});

test('a token replaces a shared key, and another token the key of the first', curl, async (t) => {
  const { vault, client, file, install } = await enrolling(t);
  assert.equal((await vault.install(client)).code, 0);
  assert.equal(keyOf(client), vault.key);
  assert.equal((await install()).code, 0);
  const first = keyOf(client);
  assert.notEqual(first, vault.key);
  writeFileSync(file, await newToken(vault));
  assert.equal((await install()).code, 0);
  assert.notEqual(keyOf(client), first);
  assert.deepEqual(await usesIn(vault), [
    [1, [host]],
    [1, [`${host}-1`]],
  ]);
});

test(
  'after the key of a machine was revoked, the message says to create another token, which works',
  curl,
  async (t) => {
    const { vault, client, file, install } = await enrolling(t, {}, ['--uses', '9']);
    const mail = ['--certificate', 'mail', '--destination', join(client.home, 'mail')];
    for (const args of [[], mail]) assert.equal((await install(args)).code, 0);
    const revoked = keyOf(client);
    await vault.command('api-key', 'revoke', host);
    for (const refused of [await client.run(['--run']), await install(), await install(mail)]) {
      assert.equal(refused.code, 10, refused.stderr);
      assert.match(
        refused.stderr,
        /: 401: the API key is unknown, revoked or expired\nFix: on the vault, create another enrollment token, and create the job again with it: vault enrollment create\n/,
      );
      assert.doesNotMatch(refused.stderr, /--set-key/);
    }
    assert.deepEqual(await usesIn(vault), [[1, [host]]]);
    writeFileSync(file, await newToken(vault));
    for (const args of [[], mail]) {
      const installed = await install(args);
      assert.equal(installed.code, 0, installed.stderr);
    }
    const [key, ...others] = client.jobs().map((job) => keyOf(client, job));
    assert.notEqual(key, revoked);
    assert.deepEqual(others, [key]);
    assert.equal((await client.run(['--run'])).code, 0);
  },
);

inTurnOfShells(
  'after a lost answer or a failed download the same command gets the same key',
  async (t, shell) => {
    const { vault, client, install } = await enrolling(t, { shell });
    const relay = await vault.relay();
    const pid = join(client.home, 'pid');
    client.fake('start', `echo $$ >"${pid}"; exec "$@"`);
    let kill = '';
    let lost = '';
    relay.answer = (path) => {
      if (kill !== '' && path.includes(kill)) process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL');
      return lost !== '' && path.includes(lost) ? 'truncated' : undefined;
    };
    const attempt = async () => {
      const ended = await install(['--server', relay.url], { through: [join(client.bin, 'start')] });
      kill = '';
      lost = '';
      return ended;
    };
    // In order: the answer is lost, the script is killed before it arrives, the download fails, it is killed then.
    lost = '/exchange';
    const first = await attempt();
    assert.equal(first.code, 10, first.stderr);
    assert.match(first.stderr, /no job was created: http.*\/exchange: .* \(3 attempts\)\n/);
    kill = '/exchange';
    assert.equal((await attempt()).code, null);
    lost = '/private.key';
    const third = await attempt();
    assert.equal(third.code, 10, third.stderr);
    assert.deepEqual(client.jobs(), []);
    kill = '/private.key';
    assert.equal((await attempt()).code, null);
    const last = await attempt();
    assert.equal(last.code, 0, last.stderr);
    assertPair(client);
    assert.deepEqual(await usesIn(vault), [[1, [host]]]);
    assert.deepEqual(readdirSync(join(client.home, 'vault', 'state')), client.jobs());
  },
);
