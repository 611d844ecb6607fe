/**
 * A local user who can write to the destination of root's job gains nothing: root refuses paths that other users could
 * redirect, and does every step in a directory of the --owner user as that user.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { assertPair, leftovers, type Machine, machine, modeOf } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? needs('setpriv') : { skip: 'only root can become another user' };
const nobody = 65_534;
const secret = 'root:only root may read this\n';

type Scene = {
  readonly vault: ClientVault;
  readonly client: Machine;
  /** A directory of root in which nothing may change. */
  readonly guarded: string;
  /** Runs a shell script as the user `nobody`. */
  readonly attack: (script: string) => void;
  readonly install: () => ReturnType<Machine['run']>;
  /** Fails if the attacker read or changed root's files. */
  readonly assertSafe: (when: string) => void;
};

/** A machine with a directory of `nobody`, and the destination inside it. */
async function scene(t: TestContext, client = machine(t)): Promise<Scene> {
  const vault = await clientVault(t);
  chmodSync(client.home, 0o755);
  const guarded = join(client.home, 'guarded');
  mkdirSync(guarded, { mode: 0o755 });
  writeFileSync(join(guarded, 'secret'), secret, { mode: 0o600 });
  writeFileSync(join(guarded, 'public'), 'public\n', { mode: 0o644 });
  const state = () =>
    readdirSync(guarded).map((name) => {
      const { mode, uid, gid } = lstatSync(join(guarded, name));
      return [name, mode, uid, gid, readFileSync(join(guarded, name), 'utf8')];
    });
  const before = state();
  return {
    vault,
    client,
    guarded,
    attack: (script) => {
      execFileSync('setpriv', [...asNobody, 'sh', '-c', `cd '${client.home}' || exit; ${script}`], {
        stdio: 'ignore',
      });
    },
    install: () => vault.install(client, ['--owner', 'nobody']),
    assertSafe: (when) => {
      assert.deepEqual(state(), before, when);
      // Not recursive readdir, which would follow the attacker's links.
      const found = execFileSync('find', [client.destination, '-type', 'f'], { encoding: 'utf8' });
      for (const path of found.split('\n').filter((name) => name !== ''))
        assert(!readFileSync(path, 'utf8').includes(secret), `${when}: ${path} has the secret`);
    },
  };
}

const asNobody = [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];

/** A job of root in a directory of `nobody`, with a new version in the vault. */
async function withNews(t: TestContext): Promise<Scene> {
  const all = await scene(t);
  mkdirSync(all.client.destination);
  chownSync(all.client.destination, nobody, nobody);
  const installed = await all.install();
  assert.equal(installed.code, 0, installed.stderr);
  await all.vault.renew();
  return all;
}

const refused: readonly [string, RegExp, (client: Machine) => void][] = [
  [
    'a destination of another user',
    /tls belongs to user nobody, .*\nTry: .*--owner nobody/,
    ({ destination }) => {
      mkdirSync(destination);
      chownSync(destination, nobody, nobody);
    },
  ],
  [
    'a destination that its group can write to',
    /the group can write to .*\nFix: chmod go-w/,
    ({ destination }) => {
      mkdirSync(destination);
      chmodSync(destination, 0o775);
    },
  ],
  [
    'a sticky destination that any user can write to',
    /any user can write to .*tls; .*\nFix: chmod go-w/,
    ({ destination }) => {
      mkdirSync(destination);
      chmodSync(destination, 0o1777);
    },
  ],
  [
    'a parent of another user',
    /home belongs to user nobody/,
    (client) => {
      mkdirSync(join(client.home, 'home', 'tls'), { recursive: true });
      chownSync(join(client.home, 'home'), nobody, nobody);
      symlinkSync('home/tls', client.destination);
    },
  ],
  [
    'a parent that any user can write to',
    /any user can write to .*open; /,
    (client) => {
      mkdirSync(join(client.home, 'open', 'tls'), { recursive: true });
      chmodSync(join(client.home, 'open'), 0o777);
      symlinkSync(join(client.home, 'open', 'tls'), client.destination);
    },
  ],
  [
    'a link of another user',
    /link belongs to user nobody/,
    (client) => {
      mkdirSync(join(client.home, 'sticky'));
      chmodSync(join(client.home, 'sticky'), 0o1777);
      const link = join(client.home, 'sticky', 'link');
      symlinkSync(client.home, link);
      execFileSync('chown', ['-h', 'nobody', link]);
      symlinkSync('sticky/link/tls', client.destination);
    },
  ],
];

for (const [name, message, prepare] of refused) {
  test(`root rejects ${name}, even for an existing job, and reports the reason`, asRoot, async (t) => {
    const { vault, client } = await scene(t);
    prepare(client);
    const installed = await vault.install(client);
    assert.equal(installed.code, 12, installed.stderr);
    assert.match(installed.stderr, message);
    assert.deepEqual(client.jobs(), []);
    rmSync(client.destination, { recursive: true });
    assert.equal((await vault.install(client)).code, 0);
    rmSync(client.destination, { recursive: true });
    for (const made of ['home', 'open', 'sticky'])
      rmSync(join(client.home, made), { recursive: true, force: true });
    prepare(client);
    const run = await client.run(['--run']);
    assert.equal(run.code, 12, run.stderr);
    assert.match(run.stderr, message);
    const status = await client.run(['--status']);
    assert.equal(status.code, 1);
    assert.match(status.stdout, / {2}problem {6}/);
  });
}

/** What version 0.1.0 trusted: a list of paths and their contents. */
function plant(destination: string, job: string, guarded: string): string {
  const planted = `${destination}/.vault-previous-${job}`;
  const out = '../guarded';
  return `mkdir -p '${planted}/${out}' '${planted}/x' 2>/dev/null
    : >'${planted}/.vault-swapping'
    printf '%s\\n' '${out}/evil' '${out}/public' 'tls.crt' 'tls.key' >'${planted}/.vault-changed'
    ln -s '${guarded}/secret' '${planted}/tls.crt'
    ln '${guarded}/public' '${planted}/tls.key' || echo evil >'${planted}/tls.key'
    mkfifo '${planted}/evil'`;
}

test('a journal that a user planted in the place of that of version 0.1.0 is not used', asRoot, async (t) => {
  const { client, guarded, attack, assertSafe } = await withNews(t);
  const [job = ''] = client.jobs();
  attack(plant(client.destination, job, guarded));
  const run = await client.run(['--run']);
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /version 0\.1\.0 was interrupted .* is not used/);
  assertSafe('--owner');
  assertPair(client);
  assert.deepEqual(leftovers(client), []);
});

test('a sticky directory is rejected before anything planted in it is used', asRoot, async (t) => {
  const { vault, client, guarded, attack, assertSafe } = await scene(t);
  assert.equal((await vault.install(client)).code, 0);
  const old = client.file('tls.crt');
  await vault.renew();
  chmodSync(client.destination, 0o1777);
  const [job = ''] = client.jobs();
  attack(plant(client.destination, job, guarded));
  attack(
    `mkdir '${client.destination}/.vault-staging-${job}'; ln -s '${guarded}' '${client.destination}/.vault-copy-${job}-1'`,
  );
  assert.equal((await client.run(['--run'])).code, 12);
  assertSafe('refused');
  assert.equal(client.file('tls.crt'), old);
  // Once only root can write to the directory, the script leaves planted files for a person to inspect.
  chmodSync(client.destination, 0o755);
  const stopped = await client.run(['--run']);
  assert.equal(stopped.code, 12, stopped.stderr);
  assert.match(stopped.stderr, /not a directory of root; inspect and remove it/);
  rmSync(join(client.destination, `.vault-staging-${job}`), { recursive: true });
  const run = await client.run(['--run']);
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /is not used/);
  assertSafe('closed');
  assertPair(client);
});

/** Attacks of `nobody` in its own directory that try to mislead root; each tolerates missing files. */
function attacks({ client, guarded }: Scene): string[] {
  const job = client.jobs()[0] ?? '';
  return [
    `cd tls && mv .vault-staging-${job} s.$$; ln -s '${guarded}' .vault-staging-${job}`,
    `cd tls && rm -f tls.key && ln -s '${guarded}/secret' tls.key`,
    'cd tls && rm -f tls.crt && mkfifo tls.crt',
    `cd tls && rm -f tls.key && ln '${guarded}/public' tls.key`,
    `cd tls && for n in old 1 2 probe; do ln -s '${guarded}/public' .vault-copy-${job}-$n; done`,
    `cd tls && rm -rf .vault-staging-${job} && mkdir .vault-staging-${job} && ln -s '${guarded}/secret' .vault-staging-${job}/tls.crt`,
    `cd tls && rm -f tls.crt && ln -s '${guarded}' tls.crt; rm -f tls.key; ln -s '${guarded}/new' tls.key`,
  ];
}

const programs = ['mv', 'cp', 'rm', 'mkdir', 'chmod', 'sync', 'cat', 'ls', 'find', 'setpriv'];

test(
  'attacks by the owner of the directory at any step of a run of root read and change no other files',
  asRoot,
  async (t) => {
    const all = await withNews(t);
    const { client, attack, assertSafe } = all;
    for (const program of programs) {
      client.fake(
        program,
        `PATH=${process.env.PATH}
      if [ "$(id -u)" = 0 ] && [ -n "$ATTACK_AT" ] && [ ! -e "${client.home}/done" ]; then
        printf x >>"${client.home}/calls"
        if [ "$(wc -c <"${client.home}/calls")" -ge "$ATTACK_AT" ]; then
          : >"${client.home}/done"
          setpriv ${asNobody.join(' ')} sh "${client.home}/attack" >/dev/null 2>&1
        fi
      fi
      exec ${program} "$@"`,
      );
    }
    const environment = { CERTIFICATE_VAULT_FETCH_SECONDS: '2', CERTIFICATE_VAULT_FETCH_TRIES: '1' };
    const list = attacks(all);
    let tried = 0;
    for (let step = 1; ; step += 3) {
      for (const name of ['calls', 'done']) rmSync(join(client.home, name), { force: true });
      // Each attempt starts with the directory as an earlier run left it, with the old files.
      attack(`cd tls && chmod -R u+w . && rm -rf ..?* .[!.]* * && echo old >tls.crt && echo old >tls.key`);
      writeFileSync(
        join(client.home, 'attack'),
        `cd '${client.home}' || exit; ${list[tried % list.length]}`,
        {
          mode: 0o644,
        },
      );
      const run = await client.run(['--run'], { environment: { ...environment, ATTACK_AT: String(step) } });
      assertSafe(`step ${step}, attack ${tried % list.length}: ${run.stderr}`);
      assert(run.code === 0 || run.code === 12, `step ${step}: ${run.code} ${run.stderr}`);
      if (!existsSync(join(client.home, 'done'))) break;
      tried += 1;
    }
    assert(tried > 15, `${tried} attacks`);
    attack('cd tls && rm -rf ..?* .[!.]* *');
    const healed = await client.run(['--run']);
    assert.equal(healed.code, 0, healed.stderr);
    assertPair(client);
  },
);

test('continuous attacks by the owner of the directory read and change no other files', asRoot, async (t) => {
  const all = await withNews(t);
  const { client, attack, assertSafe } = all;
  const loop = attacks(all).map((one) => `(${one}) 2>/dev/null;`);
  const racer = spawn(
    'setpriv',
    [
      ...asNobody,
      'sh',
      '-c',
      `cd '${client.home}'; while :; do ${loop.join('\n')}\n (cd tls && rm -rf s.* tls.crt); done`,
    ],
    { stdio: 'ignore', detached: true },
  );
  try {
    const environment = { CERTIFICATE_VAULT_FETCH_SECONDS: '1', CERTIFICATE_VAULT_FETCH_TRIES: '1' };
    for (let run = 1; run <= 4; run += 1) {
      await client.run(['--run'], { environment });
      await atRest(racer.pid ?? 0, () => assertSafe(`run ${run}`));
    }
  } finally {
    if (racer.pid !== undefined) process.kill(-racer.pid, 'SIGKILL');
  }
  attack('cd tls && rm -rf ..?* .[!.]* *');
  const healed = await client.run(['--run']);
  assert.equal(healed.code, 0, healed.stderr);
  assertPair(client);
});

/** Looks while all processes of this session are stopped: between two looks, they would exchange what is looked at. */
async function atRest(session: number, look: () => void): Promise<void> {
  process.kill(-session, 'SIGSTOP');
  try {
    await eventually('the attacker is stopped', () => isStopped(session));
    look();
  } finally {
    process.kill(-session, 'SIGCONT');
  }
}

/**
 * Whether no process of the session can run. A shell whose child stopped between vfork and exec shows as waiting for
 * the disk (D): the kernel stops it only when the child goes on.
 */
function isStopped(session: number): boolean {
  const listed = execFileSync('ps', ['-o', 'pid=,ppid=,stat=', '-s', String(session)], { encoding: 'utf8' });
  const processes = listed
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/));
  const ofStopped = new Set(
    processes.flatMap(([, parent, state = '']) => (/^T/.test(state) ? [parent] : [])),
  );
  return processes.every(
    ([pid, , state = '']) => /^[TZ]/.test(state) || (/^D/.test(state) && ofStopped.has(pid)),
  );
}

async function lifeWithOwner(t: TestContext, client: Machine): Promise<void> {
  const { vault, install } = await scene(t, client);
  mkdirSync(client.destination);
  chownSync(client.destination, nobody, nobody);
  const installed = await install();
  assert.equal(installed.code, 0, installed.stderr);
  const about = () =>
    ['tls.crt', 'tls.key'].map((name) => {
      const { uid, ino } = lstatSync(join(client.destination, name));
      return { uid, ino, mode: modeOf(join(client.destination, name)) };
    });
  const first = about();
  assert.deepEqual(
    first.map(({ uid, mode }) => [uid, mode]),
    [
      [nobody, 0o644],
      [nobody, 0o600],
    ],
  );
  chmodSync(join(client.destination, 'tls.key'), 0o644);
  const unchanged = await client.run(['--run']);
  assert.equal(unchanged.code, 0, unchanged.stderr);
  assert.deepEqual(about(), first);
  const before = client.file('tls.crt');
  await vault.renew();
  const renewed = await client.run(['--run']);
  assert.equal(renewed.code, 0, renewed.stderr);
  assert.notEqual(client.file('tls.crt'), before);
  assertPair(client);
  assert.deepEqual(leftovers(client), []);
  const status = await client.run(['--status']);
  assert.equal(status.code, 0, status.stdout);
  assert.equal((await client.run(['--uninstall'])).code, 0);
}

if (isRoot) {
  inTurnOfShells(
    'root writes to a directory of the owner as the owner',
    (t, shell) => lifeWithOwner(t, machine(t, { shell })),
    'setpriv',
  );
} else test('root writes to a directory of the owner as the owner', asRoot, () => undefined);

test('root uses su to write as the owner if setpriv is missing', isRoot ? needs('su') : asRoot, async (t) => {
  const client = machine(t);
  client.fake('setpriv', 'exit 127');
  await lifeWithOwner(t, client);
});

test('without setpriv and su, a directory of the owner is rejected', asRoot, async (t) => {
  const { client, install } = await scene(t);
  for (const program of ['setpriv', 'su']) client.fake(program, 'exit 1');
  mkdirSync(client.destination);
  chownSync(client.destination, nobody, nobody);
  const installed = await install();
  assert.equal(installed.code, 12, installed.stderr);
  assert.match(installed.stderr, /neither setpriv nor su can run programs as that user/);
  assert.deepEqual(readdirSync(client.destination), []);
});

test('root does not keep jobs in the directory of another user', asRoot, async (t) => {
  const { vault, client } = await scene(t);
  const home = join(client.home, 'theirs');
  mkdirSync(home);
  chownSync(home, nobody, nobody);
  const installed = await vault.install(client, [], { environment: { CERTIFICATE_VAULT_HOME: home } });
  assert.equal(installed.code, 12, installed.stderr);
  assert.match(installed.stderr, /theirs belongs to user nobody/);
  assert.deepEqual(readdirSync(home), []);
});

test('root does not put temporary files into the directory of another user', asRoot, async (t) => {
  const { vault, client } = await scene(t);
  const theirs = join(client.home, 'theirs');
  mkdirSync(theirs);
  chownSync(theirs, nobody, nobody);
  client.fake('mkdir', `echo "$*" >>${client.home}/made; exec /bin/mkdir "$@"`);
  const installed = await vault.install(client, [], { environment: { TMPDIR: theirs } });
  assert.equal(installed.code, 0, installed.stderr);
  assert.doesNotMatch(readFileSync(join(client.home, 'made'), 'utf8'), /theirs/);
});
