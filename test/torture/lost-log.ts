/** The losses of what SQLite has beside the database: its write-ahead log, and the memory that processes share. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Loss } from './lost-files.ts';
import { ask, runCommand, untilReady } from './running-vault.ts';

/** Files that SQLite has beside the database, lost under a running server. It saves what they contain, and stops. */
const lostBeside: readonly { title: string; lose: (path: string) => void; ends: RegExp }[] = [
  {
    title: 'vault.db-wal removed under a running server',
    lose: (path) => rmSync(`${path}-wal`),
    ends: /Nothing is lost: the write-ahead log was saved into /,
  },
  {
    title: 'vault.db-shm removed under a running server',
    lose: (path) => rmSync(`${path}-shm`),
    ends: /Nothing is lost: the write-ahead log is complete\. /,
  },
  {
    title: 'vault.db-wal and vault.db-shm removed under a running server',
    lose: (path) => {
      for (const file of [`${path}-wal`, `${path}-shm`]) rmSync(file);
    },
    ends: /Nothing is lost: the write-ahead log was saved into /,
  },
  // The files of the first loss are still there at the second.
  ...['', ' again'].map((again) => ({
    title: `vault.db-wal replaced${again} under a running server`,
    lose: (path: string) => {
      cpSync(`${path}-wal`, `${path}-wal.copy`);
      renameSync(`${path}-wal.copy`, `${path}-wal`);
    },
    ends: /^ {2}Fix: (.+)$/m,
  })),
  {
    title: 'vault.db-shm replaced under a running server',
    lose: (path) => {
      cpSync(`${path}-shm`, `${path}-shm.copy`);
      renameSync(`${path}-shm.copy`, `${path}-shm`);
    },
    ends: /Nothing is lost: the write-ahead log is complete\. /,
  },
];

const lossesBeside = lostBeside.map(
  ({ title, lose, ends }): Loss => ({
    title,
    endure: async ({ place, started }) => {
      const server = await started.listening;
      const path = join(place.data, 'vault.db');
      lose(path);
      // A command that wrote beside the server would have other locks.
      const missing = [`${path}-wal`, `${path}-shm`].some((file) => !existsSync(file));
      const refusal = await runCommand(place, ['api-key', 'list']);
      if (missing && refusal.code !== 0)
        assert.match(refusal.stderr, /-(wal|shm) is missing, while a vault server has the database open/);
      // Whether or not it has noticed by itself.
      await ask(`${server?.url}/api/v1/ready`).catch(() => undefined);
      assert.equal(await started.ended, '1', started.log());
      const said = ends.exec(started.log());
      assert.ok(said, started.log());
      const [, fix] = said;
      if (fix !== undefined) execFileSync('sh', ['-c', fix]);
    },
  }),
);

const renamedAndBack: Loss = {
  title: 'vault.db-wal renamed under a running server and put back',
  endure: async ({ place, started }) => {
    const log = join(place.data, 'vault.db-wal');
    renameSync(log, `${log}.elsewhere`);
    renameSync(`${log}.elsewhere`, log);
    const server = await started.listening;
    await untilReady(server?.url ?? '');
    await started.kill();
  },
};

export const lossesOfLog: readonly Loss[] = [...lossesBeside, renamedAndBack];
