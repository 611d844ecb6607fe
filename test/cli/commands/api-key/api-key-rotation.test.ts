/**
 * `vault api-key rotate`: what is printed where, what a running server says at once, and that backups keep both
 * secrets.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const note = 'The key is not shown again. Store it where only its client can read it.\n';
const rawKey = /^vk_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}\n$/;

async function prepared(t: TestContext) {
  const dir = join(tempDir(t), 'data');
  const run = (...args: string[]) => vault([...args, '--data-dir', dir]);
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const create = (name: string) =>
    done('api-key', 'create', '--name', name, '--scope=certificates:read', '--certificate=web');
  const raw = await create('www');
  return { dir, run, done, create, raw };
}

const statusOf = async (url: string, raw: string) =>
  (await fetch(`${url}/api/v1/certificates/web`, { headers: { Authorization: `Bearer ${raw.trim()}` } }))
    .status;

test('rotate prints only the new key on stdout; both keys are valid during the overlap, also after a restore', async (t) => {
  const { dir, run, done, raw } = await prepared(t);
  const server = await serve(t, dir);
  assert.equal(await statusOf(server.url, raw), 200);
  const { code, stdout, stderr } = await run('api-key', 'rotate', 'www');
  assert.equal(code, 0, stderr);
  assert.match(stdout, rawKey);
  const [key] = JSON.parse(await done('api-key', 'list')) as Record<string, string>[];
  assert.equal(stderr, `${note}The old key of www is valid until ${key?.previous_expires_at}.\n`);
  assert.deepEqual([key?.prefix, key?.previous_prefix], [stdout.slice(0, 15), raw.slice(0, 15)]);
  const days = (Date.parse(key?.previous_expires_at ?? '') - Date.now()) / 86_400_000;
  assert(days > 6.9 && days <= 7, String(days));
  assert.deepEqual([await statusOf(server.url, raw), await statusOf(server.url, stdout)], [200, 200]);
  const events = await done('audit', 'list', '--json', '--action=api_key.rotate');
  const [event] = JSON.parse(events) as { actor: string }[];
  assert.equal(event?.actor, 'local-cli');
  assert(!events.includes(stdout.split('.')[1]?.trim() ?? ''));

  const backup = join(dir, '..', 'vault.backup');
  await done('backup', backup);
  const again = await run('api-key', 'rotate', '--id=1', '--overlap', '0');
  assert.equal(
    again.stderr,
    `${note}The old key of www is no longer valid.\nThe key before the old one is no longer valid.\n`,
  );
  const statuses = await Promise.all([raw, stdout, again.stdout].map((one) => statusOf(server.url, one)));
  assert.deepEqual(statuses, [401, 401, 200]);
  await server.end();

  await done('restore', backup, '--replace', '--yes');
  const restored = await serve(t, dir);
  const kept = await Promise.all([raw, stdout, again.stdout].map((one) => statusOf(restored.url, one)));
  assert.deepEqual(kept, [200, 200, 401]);
});

test('rotate rejects unknown and revoked keys and invalid overlaps, and changes no key', async (t) => {
  const { run, done, create } = await prepared(t);
  await create('old');
  await done('api-key', 'revoke', 'old');
  const before = await done('api-key', 'list');
  const wrong: [code: number, args: string[], stderr: string][] = [
    [1, ['wwww'], 'vault: Unknown API key "wwww".\n  Did you mean "www"?\n'],
    [1, ['99'], 'vault: Unknown API key 99.\n  Try: vault api-key list\n'],
    [1, ['old'], 'vault: API key 2 (old) is revoked.\n  Try: vault api-key create\n'],
    [
      1,
      ['www', '--overlap=soon'],
      'vault: "soon" is not an overlap: write a number and m, h, d or y, up to 1y, such as 7d; or 0 to end the old key at once\n',
    ],
    [2, [], 'vault: --id is missing\n  Try: vault api-key rotate --help\n'],
  ];
  for (const [code, args, stderr] of wrong) {
    assert.deepEqual(await run('api-key', 'rotate', ...args), { code, stdout: '', stderr }, args.join(' '));
  }
  assert.equal(await done('api-key', 'list'), before);
});
