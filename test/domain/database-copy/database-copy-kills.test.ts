/**
 * A move that is killed before any of its changes: never can both databases be served, and the same command completes
 * it.
 */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertSame, contentsOf, done, filledVault, refused } from '../../harness/database/moving-vault.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { fromSource, runInside, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const needed = needsPostgres();
const killer = fileURLToPath(new URL('../../harness/processes/kill-at.ts', import.meta.url));
const [node, main] = fromSource;
const program = [node, '--import', killer, main];

type Move = {
  /** Where the vault is, and where it goes: the options of commands, and the path or URL. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly source: string;
  readonly target: string;
  readonly copy: readonly string[];
};

const certificate = (name: string) => ['certificate', 'create', `--name=${name}`, `--domain=${name}.test`];

/** Kills the move before its first change, before its second, and so on; `prepare` makes each afresh. */
async function killEverywhere(prepare: () => Promise<Move>, under: string): Promise<number> {
  for (let at = 1; ; at += 1) {
    const { from, to, source, target, copy } = await prepare();
    const before = await contentsOf(source);
    const environment = { KILL_AT: String(at), KILL_UNDER: under, KILL_COMMITS: '1', KILL_NAMES: '1' };
    const { code, stderr } = await vault(copy, { program, environment });
    if (code === 0) {
      assertSame(before, await contentsOf(target), ['database.copy']);
      return at - 1;
    }
    assert.equal(code, null, stderr);
    const opens = async (place: readonly string[]) =>
      (await runInside(['certificate', 'list', ...place])).code === 0;
    assert.ok(!((await opens(from)) && (await opens(to))), `killed before change ${at}: both can be served`);
    // What changes until the copy is taken up again is not lost.
    if (await opens(from)) await done(...certificate('later'), ...from);
    const now = await contentsOf(source);
    await done(...copy);
    assertSame(now, await contentsOf(target), ['database.copy']);
    assert.ok(await opens(to), `killed before change ${at}`);
    await refused(['certificate', 'list', ...from], /was moved to/);
  }
}

test('a move to a server is completed by the same command, wherever it was killed', needed, async (t) => {
  const original = await filledVault(t);
  const dir = tempDir(t);
  const data = join(dir, 'data');
  const server = await postgresServer();
  const kills = await killEverywhere(async () => {
    rmSync(data, { recursive: true, force: true });
    cpSync(original, data, { recursive: true });
    const url = await server.createDatabase();
    return {
      from: ['--data-dir', data],
      to: ['--data-dir', data, '--database', url],
      source: join(data, 'vault.db'),
      target: url,
      copy: ['database', 'copy', '--to', url, '--data-dir', data],
    };
  }, '');
  // The schema, the copy, the mark, and the end.
  assert.ok(kills >= 4, `${kills} changes`);
});

test('a move to a directory is completed by the same command, wherever it was killed', needed, async (t) => {
  const original = await filledVault(t);
  const dir = tempDir(t);
  const back = join(dir, 'back');
  const server = await postgresServer();
  const template = await server.createDatabase();
  await done('database', 'copy', '--to', template, '--data-dir', original);
  const key = ['--master-key-file', join(original, 'master.key')];
  const kills = await killEverywhere(async () => {
    rmSync(back, { recursive: true, force: true });
    const url = await server.createDatabase(undefined, { template: new URL(template).pathname.slice(1) });
    const from = ['--data-dir', original, '--database', url];
    return {
      from,
      to: ['--data-dir', back, ...key],
      source: url,
      target: join(back, 'vault.db'),
      copy: ['database', 'copy', '--to', back, ...from],
    };
  }, back);
  // The schema of the draft, the copy, the mark, the end, and the names.
  assert.ok(kills >= 6, `${kills} changes`);
});
