/** Nodes of one database: vaults on one file, each with a clock of its own, and the clock of the database. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DatabaseClock } from '../../../src/domain/nodes/database-clock.ts';
import type { OwnNode } from '../../../src/domain/nodes/nodes.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { tempDir } from '../temp-dir.ts';
import { type TestVault, testVault } from '../test-vault.ts';
import { TestWorld } from '../test-world.ts';
import { testedEngine } from './tested-engine.ts';

/** After this many turns of the event loop without a query, all jobs wait for a clock. */
const quietTurns = 50;

export type SharedNode = Omit<TestVault, 'vault'> & {
  readonly vault: Vault & { readonly sharedClock: DatabaseClock };
  readonly id: string;
  /** A file of its own with the same key, as on a machine of its own. */
  readonly keyFile: string;
};

export type SharedNodes<Skews extends readonly number[]> = {
  readonly nodes: { readonly [Index in keyof Skews]: SharedNode };
  /** The clock of the database. */
  readonly database: TestWorld;
  /** Moves the clock of the database, and of these nodes (default: all); the others hang. */
  readonly advance: (ms: number, nodes?: readonly SharedNode[]) => void;
  /** Resolves when the database has answered all that was asked of it, so that all jobs wait for a clock. */
  readonly settle: () => Promise<void>;
  /**
   * Runs the clocks of the database and of these nodes (default: all) slowly until the work is done: a connection that
   * waits for the lock of another one sleeps.
   */
  readonly during: <T>(work: Promise<T>, nodes?: readonly SharedNode[]) => Promise<T>;
};

/** Opens a node for each number, the milliseconds by which its clock is ahead of that of the database. */
export async function sharedNodes<const Skews extends readonly number[]>(
  t: TestContext,
  ...skews: Skews
): Promise<SharedNodes<Skews>> {
  const dataDir = tempDir(t);
  const database = new TestWorld();
  const opened: SharedNode[] = [];
  const queries = new Set<unknown>();
  for (const [index, skew] of skews.entries()) {
    const world = new TestWorld(database.now() + skew);
    const keyFile = join(index === 0 ? dataDir : tempDir(t), 'master.key');
    if (index > 0) copyFileSync(join(dataDir, 'master.key'), keyFile);
    const settings = { masterKeyFile: keyFile };
    const node = await testVault(t, { dataDir, world, settings, databaseNow: database.now });
    watch(node.vault.db, queries);
    const { sharedClock } = node.vault;
    if (sharedClock === undefined) throw new Error('the vault has not noticed that it is shared');
    opened.push({ ...node, vault: { ...node.vault, sharedClock }, id: `node-${index + 1}`, keyFile });
  }
  const advance = (ms: number, nodes: readonly SharedNode[] = opened) => {
    database.advance(ms);
    for (const { world } of nodes) world.advance(ms);
  };
  return {
    nodes: opened as unknown as SharedNodes<Skews>['nodes'],
    database,
    advance,
    settle: async () => {
      // SQLite answers at once; what waits for the lock of another connection sleeps.
      const isOpen = () => testedEngine !== 'sqlite' && queries.size > 0;
      for (let quiet = 0; quiet < quietTurns; quiet = isOpen() ? 0 : quiet + 1) await nextTurn();
    },
    during: async (work, nodes) => {
      let isOver = false;
      const over = work.finally(() => {
        isOver = true;
      });
      over.catch(() => {
        // It is returned below.
      });
      for (; !isOver; advance(1, nodes)) await nextTurn();
      return over;
    },
  };
}

/** Notes the transactions and queries that the database has not answered yet. */
function watch(db: Vault['db'], queries: Set<unknown>): void {
  const write = db.write.bind(db);
  const reader = db.reader.withPlugin({
    transformQuery: ({ node, queryId }) => {
      queries.add(queryId);
      return node;
    },
    transformResult: async ({ result, queryId }) => {
      queries.delete(queryId);
      return result;
    },
  });
  const watched: Pick<Vault['db'], 'write' | 'reader'> = {
    reader,
    write: (work) => {
      const written = write(work);
      queries.add(written);
      const over = () => queries.delete(written);
      written.then(over, over);
      return written;
    },
  };
  Object.assign(db, watched);
}

/** What a server with this id says of itself. */
export function ownNode(
  id: string,
  {
    host = id,
    version = '0.1.0',
    ...settings
  }: Partial<Omit<OwnNode, 'settings'>> & Partial<OwnNode['settings']> = {},
): OwnNode {
  return {
    host,
    version,
    settings: {
      instance: id,
      listen: { host: '127.0.0.1', port: 8080 },
      public_url: null,
      tls_certificate: null,
      tls_cert_file: null,
      tls_key_file: null,
      backup_dir: null,
      backup_every: null,
      backup_keep: null,
      master_keys: null,
      ...settings,
    },
  };
}
