/**
 * One vault as several machines may serve it: from SQLite, from PostgreSQL by one node, and by two. Each has a copy of
 * the same vault and its own servers, so that they can take turns.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FilledVault } from './filled-vault.ts';
import type { MeasuredDatabase } from './measured-database.ts';
import { type ServerProcess, serveCommand, startServer } from './server-process.ts';

export type Deployment = {
  readonly name: string;
  /** The data directory of its first node. */
  readonly dataDir: string;
  /** Its database on the server; undefined for SQLite. */
  readonly url: string | undefined;
  readonly nodes: readonly ServerProcess[];
};

/** The deployments that are measured: their name, and the number of their nodes on PostgreSQL. */
const wanted = [
  { name: 'SQLite', nodes: 0 },
  { name: 'PostgreSQL, one node', nodes: 1 },
  { name: 'PostgreSQL, two nodes', nodes: 2 },
] as const;

type Start = {
  /** Each gets a copy of it. */
  readonly vault: FilledVault;
  readonly server: MeasuredDatabase;
  /** Gets the deployments as they start, for the caller to stop. */
  readonly started: Deployment[];
};

/** Starts them in `directory` with the executable at `program`. */
export async function startDeployments(
  program: string,
  directory: string,
  { vault, server, started }: Start,
): Promise<void> {
  for (const { name, nodes } of wanted) {
    const place = join(directory, `vault-${nodes}`);
    mkdirSync(place);
    const dataDir = join(place, 'node-1');
    cpSync(vault.dataDir, dataDir, { recursive: true });
    if (nodes === 0) {
      const node = await serve(program, dataDir, join(place, 'log'));
      started.push({ name, dataDir, url: undefined, nodes: [node] });
      continue;
    }
    const url = await server.createDatabase();
    // As an operator moves a vault.
    run(program, ['database', 'copy', '--to', url, '--data-dir', dataDir]);
    const running: ServerProcess[] = [];
    started.push({ name, dataDir, url, nodes: running });
    for (let node = 1; node <= nodes; node += 1) {
      const own = join(place, `node-${node}`);
      if (node > 1) {
        mkdirSync(own, { mode: 0o700 });
        copyFileSync(join(dataDir, 'master.key'), join(own, 'master.key'));
      }
      running.push(await serve(program, own, join(place, `log-${node}`), url));
    }
  }
}

/** Not pinned: nodes, database and load share the processors of the machine. */
function serve(program: string, dataDir: string, log: string, database?: string): Promise<ServerProcess> {
  const options = database === undefined ? [] : ['--database', database];
  return startServer([...serveCommand(program, dataDir), ...options], { log });
}

/** Throws with the error output of the command. */
function run(program: string, args: readonly string[]): void {
  execFileSync(program, args, { stdio: 'pipe' });
}
