/**
 * One PostgreSQL server as a tree of processes: started from a copy of the template, stopped, killed, paused. It never
 * outlives the test process, not even when that is killed or the server is paused.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { patience } from '../eventually.ts';
import '../processes/child-processes.ts';
import { type PostgresBinaries, serverEnvironment, serverUser } from './binaries.ts';

/** What the log of a server says when it found processes of its predecessor, which take a moment to end. */
const predecessor = /pre-existing shared memory block|lock file .* already exists/;

/** Read by a shell that the server's folder and process are passed to; it ends both once this process is gone. */
const guard = 'read -r line; kill -STOP "$1"; pkill -KILL -P "$1"; kill -KILL "$1"; rm -rf "$2"';

export class PostgresProcess {
  /** Has the data in `data`, the socket, and the log. */
  readonly folder = mkdtempSync(join(tmpdir(), 'vault-pg-'));
  readonly data = join(this.folder, 'data');
  readonly #bin: string;
  #server: ChildProcess | undefined;
  #guard: ChildProcess | undefined;
  #paused: readonly number[] = [];
  readonly #atExit = () => {
    this.#killTree();
    rmSync(this.folder, { recursive: true, force: true });
  };

  /** Copies the template; nothing runs yet. */
  constructor({ bin, template }: PostgresBinaries) {
    this.#bin = bin;
    if (serverUser.uid !== undefined) chownSync(this.folder, serverUser.uid, serverUser.gid ?? 0);
    process.once('exit', this.#atExit);
    const { status, stderr } = spawnSync('cp', ['-R', template, this.data], { ...serverUser, cwd: '/' });
    if (status !== 0) throw new Error(`failed to copy ${template}: ${stderr}`);
  }

  get log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8');
  }

  /** Starts it with these settings and resolves when it accepts connections. Rejects with the log if it does not. */
  async start(settings: Readonly<Record<string, string>>): Promise<void> {
    const deadline = Date.now() + patience;
    while (!(await this.#tryStart(settings))) {
      if (!predecessor.test(this.log) || Date.now() > deadline) {
        throw new Error(`PostgreSQL did not start: ${this.log}`);
      }
      await sleep(20);
    }
  }

  /** `fast` ends sessions and writes a checkpoint, `immediate` leaves recovery to the next start. */
  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    await this.#end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  /** As a power cut of the machine, apart from the page cache. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const ended = exit(server);
    this.#killTree();
    await ended;
    this.#endGuard();
  }

  /** Stops all its processes where they are: connections stay open, and nothing answers. */
  pause(): void {
    const pid = this.#pid();
    // First the one that starts others.
    signal(pid, 'SIGSTOP');
    const children = childrenOf(pid);
    for (const child of children) signal(child, 'SIGSTOP');
    this.#paused = [...children, pid];
  }

  resume(): void {
    for (const pid of this.#paused) signal(pid, 'SIGCONT');
    this.#paused = [];
  }

  /** Ends it and removes its data. */
  async remove(): Promise<void> {
    await this.kill();
    process.off('exit', this.#atExit);
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #tryStart(settings: Readonly<Record<string, string>>): Promise<boolean> {
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const log = openSync(join(this.folder, 'log'), 'w');
    const server = spawn(join(this.#bin, 'postgres'), ['-D', this.data, ...options], {
      ...{ cwd: this.folder, env: serverEnvironment, ...serverUser },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    server.unref();
    this.#server = server;
    server.once('exit', () => {
      if (this.#server === server) this.#server = undefined;
    });
    if (server.pid === undefined) throw new Error(`failed to start ${this.#bin}/postgres`);
    this.#startGuard(server.pid);
    const deadline = Date.now() + patience;
    while (this.#server === server && Date.now() < deadline) {
      if (this.#isReady(server.pid)) return true;
      await sleep(5);
    }
    await this.kill();
    return false;
  }

  /** The first line of its file is its process, the eighth its state. */
  #isReady(pid: number): boolean {
    try {
      const lines = readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n');
      return lines[0] === String(pid) && ['ready', 'standby'].includes(lines[7]?.trim() ?? '');
    } catch {
      // Not there yet.
      return false;
    }
  }

  /** Its input closes with this process, however that ends. */
  #startGuard(pid: number): void {
    const args = ['-c', guard, 'guard', String(pid), this.folder];
    const child = spawn('sh', args, { cwd: '/', stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    child.unref();
    (child.stdin as unknown as { unref(): void }).unref();
    this.#guard = child;
  }

  #endGuard(): void {
    this.#guard?.kill('SIGKILL');
    this.#guard = undefined;
  }

  async #end(name: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const ended = exit(server);
    this.resume();
    server.kill(name);
    await ended;
    this.#endGuard();
  }

  #pid(): number {
    if (this.#server?.pid === undefined) throw new Error('the server does not run');
    return this.#server.pid;
  }

  #killTree(): void {
    const pid = this.#server?.pid;
    if (pid === undefined) return;
    signal(pid, 'SIGSTOP');
    for (const child of childrenOf(pid)) signal(child, 'SIGKILL');
    signal(pid, 'SIGKILL');
    this.#paused = [];
  }
}

/** Resolves when it has ended; until then this process stays. */
async function exit(child: ChildProcess): Promise<void> {
  child.ref();
  await once(child, 'exit');
}

function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean).map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
