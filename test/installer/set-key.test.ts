/** --set-key: all jobs of a machine get the new API key, or none does. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Machine, machine, type Shell, shells } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { isWhole, slice } from '../harness/slice.ts';
import { deadly, killedAt } from './kills.ts';
import { inTurnOfPlaces, inTurnOfShells, type Place } from './places.ts';

const curl = needs('curl');
const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
const all = [...scopes, '--certificate', '*'];

/** A vault and a machine with the jobs `mail` and `web`. */
async function twoJobs(
  t: TestContext,
  place: Partial<Place> = {},
): Promise<{ vault: ClientVault; client: Machine }> {
  const vault = await clientVault(t, { ...place, certificates: ['web', 'mail'] });
  const client = machine(t, place);
  const mail = ['--certificate', 'mail', '--destination', join(client.home, 'mail')];
  for (const args of [[], mail]) assert.equal((await vault.install(client, args)).code, 0);
  return { vault, client };
}

/** The keys of all jobs. */
function keysOf(client: Machine): string[] {
  return client.jobs().map((job) => readFileSync(join(client.copy(job), '..', 'api-key'), 'utf8').trim());
}

/** What a change of the key must not leave behind. */
function leftBehind(client: Machine): string[] {
  const jobs = join(client.home, 'vault', 'jobs');
  const files = [...readdirSync(jobs), ...client.jobs().flatMap((job) => readdirSync(join(jobs, job)))];
  const states = readdirSync(join(client.home, 'vault', 'state'));
  return [...files, ...states].filter((name) => /next|^\.|\.new$|scratch|lock/.test(name));
}

const as = (key: string) => ({ environment: { SERVICE_API_KEY: key } });

inTurnOfPlaces('the new key replaces the old one in all jobs, without a download', async (t, place) => {
  const { vault, client } = await twoJobs(t, place);
  const key = await vault.newKey(...all);
  const before = vault.downloads();
  const set = await client.run(['--set-key'], as(key));
  assert.equal(set.code, 0, set.stderr);
  assert.match(set.stderr, /replaced the API key of 2 jobs\n/);
  assert.equal((set.stderr + set.stdout + client.syslog()).includes(key), false);
  assert.deepEqual(keysOf(client), [key, key]);
  assert.deepEqual(vault.downloads(), before);
  assert.deepEqual(leftBehind(client), []);
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal((await client.run(['--status'])).code, 0);
});

test('the key comes from a file or standard input, for the selected jobs', curl, async (t) => {
  const { vault, client } = await twoJobs(t);
  const [one, two] = [await vault.newKey(...all), await vault.newKey(...all)];
  const file = join(client.home, 'key');
  writeFileSync(file, `${one}\n`);
  const dry = await client.run(['--set-key', '--dry-run', '--key-file', file]);
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /^would replace the API key of job mail-\d+\nwould replace .* web-\d+\n$/);
  assert.deepEqual(keysOf(client), [vault.key, vault.key]);
  assert.equal((await client.run(['--set-key', '--key-file', file])).code, 0);
  assert.deepEqual(keysOf(client), [one, one]);
  const command = `echo '${two}' | exec "$@"`;
  const piped = await client.run(['--set-key', '--certificate', 'web', '--key-file', '-'], {
    through: ['sh', '-c', command, 'sh'],
  });
  assert.equal(piped.code, 0, piped.stderr);
  assert.deepEqual(keysOf(client), [one, two]);
  const empty = await client.run(['--set-key', '--key-file=-']);
  assert.equal(empty.code, 1, empty.stderr);
  assert.match(empty.stderr, /--key-file: standard input has no API key/);
  assert.equal((await client.run(['--set-key', '--certificate', 'none'], as(one))).code, 1);
  const none = await machine(t).run(['--set-key'], as(one));
  assert.equal(none.code, 1);
  assert.match(none.stderr, /no jobs/);
});

test('an API key that the vault rejects for any file of any job changes nothing', curl, async (t) => {
  const { vault, client } = await twoJobs(t);
  const refusals: readonly [string, RegExp][] = [
    ['vk_no.no', /mail-\d+: http:.*401: the API key is unknown.*\n(.*\n)*.*web-\d+: http:.*401/],
    [
      await vault.newKey(...scopes, '--certificate', 'web'),
      /mail-\d+: http:.*\/mail\/fullchain.crt: 40[34]: /,
    ],
    [
      await vault.newKey('--scope', 'certificates:read', '--certificate', '*'),
      /web-\d+: http:.*private\.key: 403: .*: .*private_keys:read/,
    ],
  ];
  for (const [key, reason] of refusals) {
    const refused = await client.run(['--set-key'], as(key));
    assert.equal(refused.code, 10, refused.stderr);
    assert.match(refused.stderr, reason);
    assert.match(refused.stderr, /the new key does not work for [12] of 2 jobs; no job was changed\n/);
    assert.deepEqual(keysOf(client), [vault.key, vault.key]);
    assert.deepEqual(leftBehind(client), []);
  }
  await vault.stop();
  const away = await client.run(['--set-key'], {
    environment: { SERVICE_API_KEY: 'vk_a.b', CERTIFICATE_VAULT_FETCH_TRIES: '1' },
  });
  assert.equal(away.code, 10, away.stderr);
  assert.match(away.stderr, /refused the connection/);
  assert.deepEqual(keysOf(client), [vault.key, vault.key]);
});

test('a failed write of the key changes no job, or the next run completes the change', curl, async (t) => {
  const { vault, client } = await twoJobs(t);
  const key = await vault.newKey(...all);
  const real = `PATH="${process.env.PATH}" exec`;
  client.fake('mv', `case "$*" in *.set-key) exit 1 ;; esac; ${real} mv "$@"`);
  const failed = await client.run(['--set-key'], as(key));
  assert.equal(failed.code, 12, failed.stderr);
  assert.match(failed.stderr, /no job was changed/);
  assert.deepEqual(keysOf(client), [vault.key, vault.key]);
  assert.deepEqual(leftBehind(client), []);
  client.fake('mv', `case "$*" in *web-*api-key) exit 1 ;; esac; ${real} mv "$@"`);
  const late = await client.run(['--set-key'], as(key));
  assert.equal(late.code, 12, late.stderr);
  assert.match(late.stderr, /the next run of a job completes it/);
  assert.match((await client.run(['--status'])).stdout, /problem {6}.*API key was interrupted; --run/);
  rmSync(join(client.bin, 'mv'));
  assert.equal((await client.run(['--run'])).code, 0);
  assert.deepEqual(keysOf(client), [key, key]);
  assert.equal((await client.run(['--status'])).code, 0);
});

inTurnOfShells(
  'a change that is killed at any step leaves all jobs or none with the new key',
  async (t, shell) => {
    const { vault, client } = await twoJobs(t, { shell });
    const keys: [string, string] = [vault.key, await vault.newKey(...all)];
    deadly(client, ['mv', 'rm', 'ln', 'mkdir', 'sync']);
    const seen = new Set<string>();
    for (let step = 1; ; step += 1) {
      if (!isTurn(shell, step)) continue;
      const [old, next] = keysOf(client)[0] === keys[0] ? keys : ([keys[1], keys[0]] as const);
      const isKilled = await killedAt(client, step, shell, ['--set-key'], next);
      if (!isKilled) break;
      const [job = ''] = client.jobs();
      const run = await client.run(['--run', job], { script: client.copy(job) });
      assert.equal(run.code, 0, `after step ${step}: ${run.stderr}`);
      const now = new Set(keysOf(client));
      assert.equal(now.size, 1, `step ${step}`);
      seen.add(now.has(old) ? 'old' : 'new');
      if (now.has(next)) assert.equal(existsSync(join(client.home, 'vault', 'jobs', '.set-key')), false);
    }
    assert.deepEqual([...seen], ['old', 'new']);
  },
);

/** The shells take turns, so that each step runs in one of them; with VAULT_TEST_WHOLE=1 it runs in all. */
function isTurn(shell: Shell, step: number): boolean {
  if (isWhole) return true;
  const order: readonly Shell[] = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  return (step + slice) % order.length === order.indexOf(shell);
}
