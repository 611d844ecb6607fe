/**
 * `vault api-key update`: each option changes one thing, every worker of a running server knows at the next request.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

async function prepared(t: TestContext) {
  const dir = join(tempDir(t), 'data');
  const run = (...args: string[]) => vault([...args, '--data-dir', dir]);
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  for (const name of ['web', 'shop'])
    await done('certificate', 'create', `--name=${name}`, '--domain=a.test');
  const rights = ['--scope=certificates:read', '--certificate=web', '--expires-at=2099-01-01T00:00:00Z'];
  const raw = (await done('api-key', 'create', '--name=www', ...rights)).trim();
  const key = async () => (JSON.parse(await done('api-key', 'list')) as Record<string, unknown>[])[0];
  return { dir, run, done, raw, key };
}

test('update changes only the specified fields and takes effect at the next request', async (t) => {
  const { dir, run, done, raw, key } = await prepared(t);
  const { url } = await serve(t, dir);
  const statuses = async (name: string) => {
    const headers = { Authorization: `Bearer ${raw}` };
    return [(await fetch(`${url}/api/v1/certificates/${name}`, { headers })).status];
  };
  assert.deepEqual([await statuses('web'), await statuses('shop')], [[200], [403]]);
  const updated = await run('api-key', 'update', 'www', '--certificate=shop');
  assert.deepEqual(updated, { code: 0, stdout: '', stderr: 'Updated API key 1.\n' });
  assert.deepEqual([await statuses('web'), await statuses('shop')], [[403], [200]]);
  await done('api-key', 'update', '--id=1', '--certificate', '*', '--allow-ip', '192.0.2.0/24');
  assert.deepEqual(await statuses('web'), [403]);
  await done('api-key', 'update', 'www', '--allow-ip=*', '--expires-at=none', '--name=front');
  assert.deepEqual(await statuses('web'), [200]);
  const { name, certificates, allowed_networks, expires_at, scopes } = (await key()) ?? {};
  assert.deepEqual(
    { name, certificates, allowed_networks, expires_at, scopes },
    {
      name: 'front',
      certificates: ['*'],
      allowed_networks: [],
      expires_at: null,
      scopes: ['certificates:read'],
    },
  );
  const events = JSON.parse(await done('audit', 'list', '--json', '--action=api_key.update')) as {
    actor: string;
    detail: { before: unknown };
  }[];
  assert.deepEqual([events.length, events[0]?.actor], [3, 'local-cli']);
  const first = events
    .map(({ detail }) => JSON.stringify(detail.before))
    .find((text) => text.includes('web'));
  assert.equal(first, '{"certificates":["web"]}');
});

test('update rejects invalid options and values and leaves the key unchanged', async (t) => {
  const { run, key } = await prepared(t);
  const before = await key();
  const wrong: [code: number, args: string[], stderr: string][] = [
    [2, ['www'], 'vault: nothing to change\n  Try: vault api-key update --help\n'],
    [2, ['www', '--overlap=1d'], 'vault: unknown option --overlap\n  Try: vault api-key update --help\n'],
    [1, ['www', '--certificate=shp'], 'vault: unknown certificate "shp"\n  Did you mean "shop"?\n'],
    [1, ['wwww', '--name=x'], 'vault: Unknown API key "wwww".\n  Did you mean "www"?\n'],
    [1, ['www', '--expires-at=2020-01-01T00:00:00Z'], 'vault: 2020-01-01T00:00:00Z is not in the future\n'],
  ];
  for (const [code, args, stderr] of wrong) {
    assert.deepEqual(await run('api-key', 'update', ...args), { code, stdout: '', stderr }, args.join(' '));
  }
  const same = await run('api-key', 'update', 'www', '--certificate=web');
  assert.deepEqual(same, { code: 0, stdout: '', stderr: 'API key 1 is unchanged.\n' });
  assert.deepEqual(await key(), before);
});
