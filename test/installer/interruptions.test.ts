/**
 * Power cuts, killed and simultaneous installations, and concurrent runs: the result is consistent and the next run
 * recovers.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readInstaller } from '../../src/cli/runtime/assets.ts';
import { assertPair, type Machine, machine, type Shell } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const once = { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } };

/** A job after a power cut between the two renames to version 2. */
async function cutBetweenRenames(
  t: TestContext,
  shell: Shell = 'sh',
): Promise<{ vault: ClientVault; client: Machine; old: string[]; state: string }> {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  assert.equal((await vault.install(client)).code, 0);
  await vault.renew();
  const old = [client.file('tls.crt'), client.file('tls.key')];
  client.fake(
    'mv',
    `case "$*" in *tls.key*tls/) /bin/mv -f "$2" "$4"; kill -9 $PPID ;; *) exec /bin/mv "$@" ;; esac`,
  );
  assert.equal((await client.run(['--run'])).code, null);
  rmSync(join(client.bin, 'mv'));
  assert.notEqual(client.file('tls.crt'), old[0]);
  assert.equal(client.file('tls.key'), old[1]);
  return { vault, client, old, state: join(client.home, 'vault', 'state', client.jobs()[0] ?? '') };
}

const loseMarks = (state: string) => {
  truncateSync(join(state, 'swapping'));
  truncateSync(join(state, 'pending'));
};
const losses: readonly [string, (state: string) => void][] = [
  ['nothing else', () => undefined],
  ['the list of new files', (state) => truncateSync(join(state, 'pending'))],
  ['a part of the list of new files', (state) => truncateSync(join(state, 'pending'), 90)],
  ['a part of the journal', (state) => truncateSync(join(state, 'swapping'), 8)],
];

/** The old pair is restored without the vault, whichever files the power cut lost. */
async function losesMarks(t: TestContext, lose: (state: string) => void, shell: Shell): Promise<void> {
  const { vault, client, old, state } = await cutBetweenRenames(t, shell);
  lose(state);
  await vault.stop();
  const run = await client.run(['--run'], once);
  assert.equal(run.code, 10, run.stderr);
  assert.match(run.stderr, /restoring the old files/);
  assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], old);
}

for (const [name, lose] of losses)
  test(`a power cut between two renames that lost ${name} leaves the old pair`, needs('curl'), (t) =>
    losesMarks(t, lose, 'sh'),
  );

inTurnOfShells('a power cut that lost all journals leaves the old pair', (t, shell) =>
  losesMarks(t, loseMarks, shell),
);

test(
  'a backup that a power cut emptied is not restored, and the run downloads the files again',
  needs('curl'),
  async (t) => {
    const { client, old, state } = await cutBetweenRenames(t);
    truncateSync(join(state, 'previous', 'tls.crt'));
    const run = await client.run(['--run']);
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stderr, /cannot restore all old files/);
    assertPair(client);
    assert.notEqual(client.file('tls.crt'), old[0]);
    assert.deepEqual(
      [existsSync(join(state, 'swapping')), existsSync(join(state, 'previous'))],
      [false, false],
    );
  },
);

test('a journal with paths of other files does not remove them', needs('curl'), async (t) => {
  const { client, state } = await cutBetweenRenames(t);
  const rows = readFileSync(join(state, 'swapping'), 'utf8');
  writeFileSync(join(state, 'swapping'), `-\t../stays\n-\tstays\n${rows}`);
  for (const path of ['stays', join('tls', 'stays')]) writeFileSync(join(client.home, path), 'x');
  assert.equal((await client.run(['--run'])).code, 0);
  for (const path of ['stays', join('tls', 'stays')]) assert(existsSync(join(client.home, path)));
});

test('everything that a rollback needs is on disk before the first rename', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  await vault.renew();
  const log = join(client.home, 'log');
  for (const program of ['sync', 'mv', 'rm'])
    client.fake(program, `echo "${program} $*" >>"${log}"; PATH=${process.env.PATH} exec ${program} "$@"`);
  assert.equal((await client.run(['--run'])).code, 0);
  const lines = readFileSync(log, 'utf8').split('\n');
  const order = [
    /^sync \S+\/previous \S+\/previous\/tls\.crt \S+\/previous\/tls\.key$/,
    /^sync \S+\/\.vault-staging-\S+ \S+\/tls\.crt \S+\/tls\.key$/,
    /^sync \S+\/pending\.new$/,
    /^mv -f \S+\/pending\.new /,
    /^sync \S+\/state\/[^/]+$/,
    /^sync \S+\/swapping\.new$/,
    /^mv -f \S+\/swapping\.new /,
    /^sync \S+\/state\/[^/]+$/,
    /^mv -f \S+\/tls\.crt \S+\/tls\.key \S+\/tls\/$/,
    /^sync \S+\/tls$/,
    /^rm -f \S+\/swapping$/,
  ];
  let at = 0;
  for (const line of lines) if (order[at]?.test(line)) at += 1;
  assert.equal(at, order.length, `${order[at]} is missing in\n${lines.join('\n')}`);
});

/** Kills the installation right after it replaced the files of the job. */
async function killedAfterReplacing(vault: ClientVault, client: Machine, shell: Shell): Promise<void> {
  client.fake('start', `echo $$ >"${client.home}/pid"; exec "$@"`);
  client.fake(
    'mv',
    `case "$*" in *'api-key job ../') /bin/mv "$@"; kill -9 "$(cat "${client.home}/pid")" ;; *) exec /bin/mv "$@" ;; esac`,
  );
  const killed = await vault.install(client, ['--schedule', '6 6 * * *'], {
    shell,
    through: [join(client.bin, 'start')],
    environment: { SERVICE_API_KEY: 'vk_wrong.wrong' },
  });
  assert.equal(killed.code, null);
  rmSync(join(client.bin, 'mv'));
}

inTurnOfShells(
  'the next run or installation restores the old job after a killed reinstallation',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    assert.equal((await vault.install(client, ['--schedule', '5 4 * * *'])).code, 0);
    const folder = join(client.copy(), '..');
    const job = () => ['job', 'api-key'].map((name) => readFileSync(join(folder, name), 'utf8'));
    const before = job();
    await killedAfterReplacing(vault, client, shell);
    assert.notDeepEqual(job(), before);
    assert.match((await client.run(['--status'])).stdout, /problem {6}an installation was interrupted/);
    const run = await client.run(['--run'], { script: client.copy() });
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stderr, /restored the previous job/);
    assert.deepEqual(job(), before);
    await killedAfterReplacing(vault, client, shell);
    const environment = { SERVICE_API_KEY: 'vk_wrong.wrong' };
    assert.equal((await vault.install(client, [], { environment })).code, 10);
    assert.deepEqual(job(), before);
    assert.equal((await client.run(['--run'])).code, 0);
    assert.equal((await client.run(['--status'])).code, 0);
  },
);

inTurnOfShells('the successful one of two concurrent installations of one job stays', async (t, shell) => {
  const vault = await clientVault(t);
  for (const wrongFirst of [true, false]) {
    const client = machine(t, { shell });
    const wrong = () => vault.install(client, [], { environment: { SERVICE_API_KEY: 'vk_wrong.wrong' } });
    const right = () => vault.install(client);
    const [one, two] = await Promise.all(wrongFirst ? [wrong(), right()] : [right(), wrong()]);
    const [bad, good] = wrongFirst ? [one, two] : [two, one];
    assert.equal(bad.code, 10, bad.stderr);
    assert.equal(good.code, 0, good.stderr);
    assertPair(client);
    assert.equal((await client.run(['--run'])).code, 0);
    assert.equal((await client.run(['--status'])).code, 0);
  }
});

/** The content of a lock that this test process holds. */
function ownLock(): string {
  const started = readFileSync(`/proc/${process.pid}/stat`, 'utf8').replace(/.*\) /s, '').split(' ')[19];
  return `${process.pid} ${started}\n`;
}

test('a stale lock that another run takes over in the meantime is left alone', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell: 'dash' });
  assert.equal((await vault.install(client)).code, 0);
  const lock = join(client.home, 'vault', 'state', client.jobs()[0] ?? '', 'lock');
  writeFileSync(lock, '4194304 1\n');
  writeFileSync(`${lock}-taken`, ownLock());
  client.fake(
    'cat',
    `/bin/cat "$@" || exit 1; case $1 in */lock) mv "$1-taken" "$1" 2>/dev/null; exit 0 ;; esac`,
  );
  client.fake('mv', `case $1 in */lock) echo "$@" >>"${client.home}/moved" ;; esac; exec /bin/mv "$@"`);
  assert.equal((await client.run(['--run'])).code, 75);
  assert.equal(readFileSync(lock, 'utf8'), ownLock());
  assert.equal(existsSync(join(client.home, 'moved')), false);
  assert.deepEqual(
    readdirSync(join(lock, '..')).filter((name) => name.startsWith('lock')),
    ['lock'],
  );
});

inTurnOfShells('all runs that wait for the lock get it', async (t, shell) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  assert.equal((await vault.install(client)).code, 0);
  const state = join(client.home, 'vault', 'state', client.jobs()[0] ?? '');
  writeFileSync(join(state, 'lock'), ownLock());
  const environment = { CERTIFICATE_VAULT_LOCK_SECONDS: '60' };
  const waiting = Promise.all([1, 2, 3].map(() => client.run(['--run'], { environment })));
  const offers = () => readdirSync(state).filter((name) => /^lock\.\d+$/.test(name));
  while (offers().length < 3) await sleep(20);
  // As a run of version 0.1.0 does.
  for (const name of offers()) rmSync(join(state, name));
  rmSync(join(state, 'lock'));
  for (const { code, stderr } of await waiting) assert.equal(code, 0, stderr);
  assert.deepEqual(
    readdirSync(state).filter((name) => name.startsWith('lock')),
    [],
  );
});

test('a lock that a power cut emptied does not block the job', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  const state = join(client.home, 'vault', 'state');
  writeFileSync(join(state, client.jobs()[0] ?? '', 'lock'), '');
  for (const name of ['install.lock', 'crontab.lock']) writeFileSync(join(state, name), '');
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal((await vault.install(client)).code, 0);
});

test('the script never redirects the special builtin ":"', () => {
  const script = readInstaller().split('\n');
  assert.deepEqual(
    script.filter((line) => /(^|[;&|{(\s]): *>/.test(line.replace(/#.*/, ''))),
    [],
  );
});

test('a run that cannot write exits with the write error code', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell: 'dash' });
  assert.equal((await vault.install(client)).code, 0);
  await vault.renew();
  // A directory with the name of the file that the run writes first.
  client.fake('mkdir', `/bin/mkdir "$@"; case "$1" in */scratch.*) /bin/mkdir "$1/head" ;; esac`);
  const run = await client.run(['--run']);
  assert.equal(run.code, 12, run.stderr);
  assert.match(run.stderr, /cannot write to /);
  assertPair(client);
});
