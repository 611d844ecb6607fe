/** Vaults that are moved between engines: one with a row in every table, and what is compared after it was moved. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Database } from '../../../src/db/database.ts';
import { keptTables } from '../../../src/db/schema/table-list.ts';
import { digestRows } from '../../../src/db/table-rows.ts';
import { createApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../../src/domain/inputs.ts';
import { runInside } from '../processes/vault-process.ts';
import { tempDir } from '../temp-dir.ts';
import { testVault } from '../test-vault.ts';
import { TestWorld } from '../test-world.ts';
import { sealEverything } from './sealed-everything.ts';

/** A data directory with a vault in which everything that can be sealed is, and rows were deleted from. */
export async function filledVault(t: Pick<TestContext, 'after'>): Promise<string> {
  const dataDir = join(tempDir(t), 'data');
  const { vault, close } = await testVault(t, { dataDir, settings: { database: undefined } });
  await sealEverything(vault);
  for (const name of ['kept', 'gone']) {
    const key = { name, scopes: ['certificates:read'], certificates: ['web'] };
    await createApiKey(vault, localCli, parseInput(createApiKeyInput, key));
  }
  // Ids of rows that are gone are never assigned again.
  await vault.db.write(async (writer) => {
    await writer.deleteFrom('api_key_certificates').where('api_key_id', '=', 2).execute();
    await writer.deleteFrom('api_keys').where('id', '=', 2).execute();
  });
  await close();
  return dataDir;
}

/** What must be the same on both sides of a move: all rows, except for the log's end and who serves. */
export type Contents = {
  readonly tables: Readonly<Record<string, string>>;
  readonly settings: readonly unknown[];
  readonly events: readonly unknown[];
  readonly assigned: ReadonlyMap<string, number>;
};

const ofMoves = [
  'audit-mark',
  'moved-to',
  'copied-from',
  'served-since',
  'served-by',
  'served-settings',
  'last-backup-at',
];

/** Reads a database: the path of a file or the URL of a server. */
export async function contentsOf(place: string): Promise<Contents> {
  const db = await openPlace(place);
  try {
    const digests = await digestRows(db.reader, new TestWorld());
    assert.equal(digests.size, keptTables.length);
    const others = [...digests].filter(([name]) => name !== 'settings' && name !== 'audit_events');
    const settings = await db.reader.selectFrom('settings').selectAll().orderBy('key').execute();
    const assigned = await db.whole.assignedIds(db.reader);
    return {
      tables: Object.fromEntries(others.map(([name, { rows, digest }]) => [name, `${rows} ${digest}`])),
      settings: settings.filter(({ key }) => !ofMoves.includes(key)),
      events: await db.reader.selectFrom('audit_events').selectAll().orderBy('id').execute(),
      assigned: new Map([...assigned].filter(([name]) => name !== 'audit_events')),
    };
  } finally {
    await db.close();
  }
}

/** Opens the database itself, whether or not its vault was moved. */
export function openPlace(place: string): Promise<Database> {
  const world = new TestWorld();
  return place.startsWith('postgres')
    ? Database.connect(place, { world, directory: '/nowhere', connections: 1 })
    : Database.open(place, world);
}

/** All of the first is in the second, which has `more` events at its end. */
export function assertSame(before: Contents, after: Contents, more: readonly string[]): void {
  const { events, ...rest } = after;
  const { events: old, ...others } = before;
  assert.deepEqual(rest, others);
  assert.deepEqual(events.slice(0, old.length), old);
  const added = events.slice(old.length) as { action: string }[];
  assert.deepEqual(
    added.map(({ action }) => action),
    more,
  );
}

/** Runs a command in this process, which must succeed. Returns what it printed. */
export async function done(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runInside(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Runs a command in this process, which must fail and say this. */
export async function refused(args: readonly string[], expected: RegExp): Promise<void> {
  const { code, stdout, stderr } = await runInside(args);
  assert.notEqual(code, 0, args.join(' '));
  assert.match(stderr, expected);
  assert.equal(stdout, '');
}
