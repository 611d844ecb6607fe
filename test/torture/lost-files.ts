/**
 * Files that are lost or emptied at random moments: the database is moved away while a server and commands run, emptied
 * beside its write-ahead log, or copied without it. Everything that was reported as done is there once the file is
 * back, and no command mistakes the rest for a new vault.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding, Order } from './chamber.ts';
import { lossesOfLog } from './lost-log.ts';
import { type Place, type Ran, runCommand, type Started, startServer, untilReady } from './running-vault.ts';

export type Round = {
  readonly place: Place;
  /** Certificates that a command reported as created. */
  readonly names: string[];
  readonly started: Started;
  readonly chance: Order['chance'];
  readonly scratch: string;
};

/** A loss under a running server. Afterwards the server is killed and the files are restored. */
export type Loss = { readonly title: string; readonly endure: (round: Round) => Promise<void> };

const creating = [
  ['certificate', 'create', '--name=lost', '--domain=lost.test'],
  ['api-key', 'create', '--name=lost', '--scope=certificates:read', '--certificate=*'],
  ['admin', 'create', '--name=lost', '--password-stdin'],
  ['serve', '--listen=127.0.0.1:0'],
];

const losses: readonly Loss[] = [
  {
    title: 'vault.db moved away under a running server, a creating command, kill -9, moved back',
    endure: async ({ place, started, chance }) => {
      const path = join(place.data, 'vault.db');
      renameSync(path, `${path}.moved`);
      const before = picture(place.data);
      refused(await create(place, chance), place, /vault\.db is missing, but its (log|mark) /);
      assert.deepEqual(picture(place.data), before, 'the rejected command changed files');
      await started.kill();
      renameSync(`${path}.moved`, path);
    },
  },
  {
    title: 'vault.db moved away after kill -9, a creating command, moved back',
    endure: async ({ place, started, chance }) => {
      await started.kill();
      const path = join(place.data, 'vault.db');
      renameSync(path, `${path}.moved`);
      const before = picture(place.data);
      refused(await create(place, chance), place, /vault\.db is missing, but its (log|mark) /);
      assert.deepEqual(picture(place.data), before, 'the rejected command changed files');
      renameSync(`${path}.moved`, path);
    },
  },
  {
    title: 'vault.db emptied beside its log, creating commands, restored from a copy',
    endure: async ({ place, started, chance }) => {
      await started.kill();
      const path = join(place.data, 'vault.db');
      const content = readFileSync(path);
      writeFileSync(path, '');
      const before = picture(place.data);
      for (let times = 0; times < 2; times += 1) {
        refused(await create(place, chance), place, /vault\.db is empty, but its (log|mark) /);
      }
      assert.deepEqual(picture(place.data), before, 'the rejected commands changed files');
      writeFileSync(path, content);
    },
  },
  {
    title: 'vault.db and master key copied to another directory, without the log',
    endure: async ({ place, started, scratch, chance }) => {
      const copy: Place = { ...place, data: join(scratch, `copy-${chance.whole(0, 1e9)}`) };
      mkdirSync(copy.data, { mode: 0o700 });
      for (const name of ['vault.db', 'master.key']) cpSync(join(place.data, name), join(copy.data, name));
      refused(await create(copy, chance), copy, /without its log|holds no vault: it has no tables/);
      refused(await runCommand(copy, ['certificate', 'list']), copy, /without its log|it has no tables/);
      await started.kill();
    },
  },
  {
    title: 'the log lost after kill -9, with something in it',
    endure: async ({ place, started, chance, names }) => {
      // Commands beside a server leave their changes in the write-ahead log; a stop and a start write the mark.
      await started.kill();
      const again = startServer(place);
      const server = await again.listening;
      if (server === undefined) throw new Error('the server is not running');
      const path = join(place.data, 'vault.db');
      const older = readFileSync(path);
      const name = `late-${names.length}`;
      done(await runCommand(place, ['certificate', 'create', `--name=${name}`, '--domain=late.test']));
      names.push(name);
      assert.equal(await server.kill('SIGTERM'), '0', again.log());
      const newer = readFileSync(path);
      writeFileSync(path, older);
      refused(await create(place, chance), place, /vault\.db is older than its mark: it ends at audit event/);
      writeFileSync(path, newer);
    },
  },
];

/** `--rounds N`: the number of rounds per loss (5). */
export async function loseFiles(order: Order): Promise<readonly Finding[]> {
  return lose(order, { rounds: order.amount('rounds') ?? 5 });
}

/** Loses files repeatedly, with one vault for all. Throws if a promise is broken. */
export async function lose(
  { program, folder, chance, say }: Order,
  { rounds }: { readonly rounds: number },
): Promise<readonly Finding[]> {
  const place: Place = { program, data: join(folder, 'data'), environment: {} };
  const names: string[] = [];
  let tried = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const { title, endure } of [...losses, ...lossesOfLog]) {
      const started = startServer(place);
      try {
        const server = await started.listening;
        if (server === undefined) throw new Error('the server is not running');
        await untilReady(server.url);
        for (let count = chance.whole(1, 2); count > 0; count -= 1) {
          const name = `a${names.length}`;
          done(await runCommand(place, ['certificate', 'create', `--name=${name}`, '--domain=a.test']));
          names.push(name);
        }
        await endure({ place, names, started, chance, scratch: folder });
      } catch (error) {
        throw new Error(title, { cause: error });
      } finally {
        await started.kill();
      }
      await everythingIsThere(place, names, title);
      tried += 1;
    }
    say(`${tried} losses, ${names.length} certificates, all there`);
  }
  return [
    { name: 'files lost, emptied or copied alone', value: tried },
    { name: 'certificates, all there', value: names.length },
    { name: 'KiB of the database', value: statSync(join(place.data, 'vault.db')).size / 1024 },
  ];
}

function create(place: Place, chance: Order['chance']): Promise<Ran> {
  return runCommand(place, chance.one(creating), { input: 'a long enough passphrase\n' });
}

function done({ code, stderr }: Ran): void {
  assert.equal(code, 0, stderr);
}

/** An error message with a hint. */
function refused({ code, stdout, stderr }: Ran, { data }: Place, sentence: RegExp): void {
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.match(stderr, sentence);
  assert.match(stderr, /^vault: .+\n( {2}\S.+\n)+$/);
  assert.match(stderr, /vault restore FILE --replace/);
  assert.ok(stderr.includes(data), stderr);
}

async function everythingIsThere(place: Place, names: readonly string[], title: string): Promise<void> {
  const listed = await runCommand(place, ['certificate', 'list', '--json']);
  done(listed);
  const found = (JSON.parse(listed.stdout) as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(found.sort(), [...names].sort(), title);
  const verified = await runCommand(place, ['audit', 'verify']);
  assert.equal(verified.code, 0, `${title}: ${verified.stdout}`);
}

/** Contents by path, without the shared memory, which any read may change. */
function picture(data: string): Record<string, string> {
  const files = readdirSync(data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
    .map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(files.sort().map((path) => [path, readFileSync(path).toString('base64')]));
}
