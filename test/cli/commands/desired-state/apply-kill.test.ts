/**
 * `vault apply` killed at any moment: all of its changes are there afterwards or none, and no secret of a key is lost.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readToken } from '../../../../src/crypto/secrets/api-key-token.ts';
import { findApiKeyByPrefix } from '../../../../src/db/tables/access/api-keys.ts';
import { fromSource, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { testVault } from '../../../harness/test-vault.ts';

const text = `version: 1
dns_providers:
  hand: {type: manual, zones: [example.com]}
certificates:
  one: {domains: [one.example.test]}
  two: {domains: [two.example.test]}
api_keys:
  a: {scopes: [certificates:read], certificates: [one], secret_file: a.key}
  b: {scopes: [certificates:read], certificates: [two], secret_file: b.key}
`;

/** A vault with one certificate that is pruned, and a way to apply the document to a copy of it that may be killed. */
async function prepared(t: TestContext) {
  const root = tempDir(t);
  const original = join(root, 'original');
  const create = ['certificate', 'create', '--name=old', '--domain=old.example.test'];
  assert.equal((await vault([...create, '--data-dir', original])).code, 0);
  const folder = join(root, 'folder');
  const data = join(root, 'data');
  const [node, main] = fromSource;
  const reset = () => {
    for (const path of [folder, data]) rmSync(path, { recursive: true, force: true });
    cpSync(original, data, { recursive: true });
    mkdirSync(folder);
    writeFileSync(join(folder, 'desired.yaml'), text);
  };
  const apply = (
    killer: string,
    environment: Readonly<Record<string, string>>,
    options: readonly string[] = ['--prune', '--yes'],
  ) => {
    const path = fileURLToPath(new URL(`../../../harness/processes/${killer}`, import.meta.url));
    const words = ['apply', '-f', join(folder, 'desired.yaml'), ...options, '--data-dir', data];
    const env = { ...process.env, ...environment };
    const { signal, status, stderr } = spawnSync(node, ['--import', path, main, ...words], {
      env,
      encoding: 'utf8',
    });
    assert.ok(signal === 'SIGKILL' || status === 0, stderr);
    return { wasKilled: signal !== null };
  };
  /** What is there, all or nothing; the names of all objects tell. */
  const look = async (): Promise<'before' | 'after'> => {
    const opened = await testVault(t, { dataDir: data });
    const { reader } = opened.vault.db;
    const found = [
      ...(await reader.selectFrom('certificates').select('name').orderBy('name').execute()),
      ...(await reader.selectFrom('dns_providers').select('name').execute()),
      ...(await reader.selectFrom('api_keys').select('name').orderBy('name').execute()),
    ].map(({ name }) => name);
    await opened.close();
    if (found.join() === 'old') return 'before';
    assert.equal(found.join(), 'one,two,hand,a,b');
    return 'after';
  };
  /** Applies it again, to the end: both files hold the secrets of the keys that are there, and nothing else is left. */
  const finish = async () => {
    const { wasKilled } = apply('kill-at-moment.ts', {});
    assert.equal(wasKilled, false);
    assert.equal(await look(), 'after');
    const opened = await testVault(t, { dataDir: data });
    for (const name of ['a', 'b']) {
      const token = readToken(readFileSync(join(folder, `${name}.key`), 'utf8').trim());
      const key = token && (await findApiKeyByPrefix(opened.vault.db.reader, token.prefix));
      assert.equal(key?.name, name);
      assert.deepEqual(key.hash, token?.hash);
    }
    await opened.close();
    assert.deepEqual(readdirSync(folder).sort(), ['a.key', 'b.key', 'desired.yaml']);
  };
  /** The names of the certificates, in the order in which they were created. */
  const names = async (): Promise<string[]> => {
    const opened = await testVault(t, { dataDir: data });
    const rows = await opened.vault.db.reader
      .selectFrom('certificates')
      .select('name')
      .orderBy('id')
      .execute();
    await opened.close();
    return rows.map(({ name }) => name);
  };
  return { folder, reset, apply, look, finish, names };
}

test('apply killed at any file operation has made all changes or none, and the next run completes it', async (t) => {
  const { folder, reset, apply, look, finish } = await prepared(t);
  const seen: string[] = [];
  for (let step = 1; ; step++) {
    reset();
    const { wasKilled } = apply('kill-at.ts', { KILL_AT: String(step), KILL_UNDER: join(folder, '') });
    seen.push(await look());
    if (!wasKilled) break;
    await finish();
  }
  // Two drafts, two names, and two drafts that lose theirs.
  assert.ok(seen.length > 6, seen.join());
  assert.deepEqual([seen[0], seen.at(-1)], ['before', 'after']);
});

test('apply killed during its database changes has made all changes or none', async (t) => {
  const { folder, reset, apply, look } = await prepared(t);
  const seen: string[] = [];
  for (let step = 1; ; step += 3) {
    reset();
    const { wasKilled } = apply('kill-at-moment.ts', { KILL_AT_LOOK: String(step) });
    seen.push(await look());
    assert.equal(existsSync(join(folder, 'a.key')) && seen.at(-1) === 'before', false);
    if (!wasKilled) break;
  }
  assert.ok(seen.filter((state) => state === 'before').length > 4, seen.join());
  assert.equal(seen.at(-1), 'after');
});

test('apply killed during a long plan has made its first changes in order, and the next run makes the rest', async (t) => {
  const { folder, reset, apply, names } = await prepared(t);
  const wanted = Array.from({ length: 120 }, (_, n) => `w${n}`);
  const lines = wanted.map((name) => `  ${name}: {domains: [${name}.test], disabled: true}\n`);
  const seen = new Set<number>();
  for (let step = 60; ; step += 60) {
    reset();
    writeFileSync(join(folder, 'desired.yaml'), `version: 1\ncertificates:\n${lines.join('')}`);
    const { wasKilled } = apply('kill-at-moment.ts', { KILL_AT_LOOK: String(step) }, []);
    const made = (await names()).filter((name) => name !== 'old');
    assert.deepEqual(made, wanted.slice(0, made.length));
    seen.add(made.length);
    if (!wasKilled) break;
    assert.equal(apply('kill-at-moment.ts', {}, []).wasKilled, false);
    assert.deepEqual((await names()).filter((name) => name !== 'old').sort(), [...wanted].sort());
  }
  assert.ok(
    [...seen].some((made) => made > 0 && made < 120),
    [...seen].join(),
  );
  assert.ok(seen.has(120));
});
