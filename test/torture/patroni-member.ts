/**
 * One member of a Patroni cluster: Patroni, and the PostgreSQL server that it runs. Both can be killed, paused and
 * started again. They run as an unprivileged user, and end with the test process, however that ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, globSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import '../harness/processes/child-processes.ts';
import { passwords, serverUser } from '../harness/postgres/binaries.ts';
import { findProgram, needs, type Skip } from '../harness/processes/missing-program.ts';
import { killTrees, signal, stopTrees, untilEnded } from '../harness/processes/process-tree.ts';

/** Debian keeps the servers of each version in a folder of its own, outside of PATH. */
const serverFolders = globSync('/usr/lib/postgresql/*/bin').toSorted();

/** Options for a test that needs a cluster; see `needs`. */
export function needsPatroni(): Skip {
  const all = [needs('patroni'), needs('etcd'), needs('postgres', serverFolders)];
  return all.find(({ skip }) => skip !== undefined) ?? {};
}

/** The passwords of the roles. */
export const memberPasswords = {
  ...passwords,
  replicator: 'replicator-password',
} as const;

/** What Patroni agrees on in etcd. A primary that does not renew its lease is replaced after `ttl` seconds. */
const agreed = {
  ttl: 10,
  loop_wait: 1,
  retry_timeout: 3,
  synchronous_mode: true,
  postgresql: {
    use_pg_rewind: true,
    use_slots: true,
    parameters: {
      // No test cuts the power of the machine.
      fsync: 'off',
      shared_buffers: '16MB',
      max_connections: 100,
      checkpoint_timeout: '1h',
      // A standby whose slot is lost with a former primary needs old segments to catch up.
      wal_keep_size: '512MB',
      // Nobody connects by it, and its path could be too long.
      unix_socket_directories: '',
    },
  },
};

export type MemberPorts = { readonly sql: number; readonly rest: number; readonly etcd: number };

/**
 * `lone` members write while the other one is away. What they confirm then is on one server only: Patroni 3.0.2 gives
 * the role back to a former primary that stood still until after its lease, and what the new one has confirmed
 * meanwhile is lost. A `strict` member lets commits wait for the other one.
 */
export type SyncMode = 'lone' | 'strict';

export class PatroniMember {
  readonly name: string;
  readonly ports: MemberPorts;
  /** The folder of the server's data. */
  readonly data: string;
  readonly #folder: string;
  #patroni: ChildProcess | undefined;
  #guard: ChildProcess | undefined;
  #paused: readonly number[] = [];
  #log = '';
  readonly #atExit = () => {
    this.#kill();
    rmSync(this.#folder, { recursive: true, force: true });
  };

  /** Writes its configuration to `parent`; nothing runs yet. */
  constructor(parent: string, name: string, ports: MemberPorts, mode: SyncMode) {
    this.name = name;
    this.ports = ports;
    this.#folder = join(parent, name);
    this.data = join(this.#folder, 'data');
    mkdirSync(this.#folder, { mode: 0o700 });
    // JSON is YAML.
    writeFileSync(
      this.#configuration,
      JSON.stringify(configuration(name, ports, mode, this.#folder, this.data)),
    );
    if (serverUser.uid === undefined) return;
    for (const path of [this.#folder, this.#configuration])
      chownSync(path, serverUser.uid, serverUser.gid ?? 0);
  }

  get #configuration(): string {
    return join(this.#folder, 'patroni.yml');
  }

  get isPaused(): boolean {
    return this.#paused.length > 0;
  }

  get isRunning(): boolean {
    return this.#patroni !== undefined;
  }

  /** What Patroni and the server wrote so far. */
  get log(): string {
    return this.#log;
  }

  /** The URL of a database of this very server, as this role. */
  url(database: string, role: 'postgres' | 'vault' = 'vault'): string {
    return `postgres://${role}:${memberPasswords[role]}@127.0.0.1:${this.ports.sql}/${database}`;
  }

  /** Starts Patroni, which starts the server. */
  start(): void {
    // That of a killed server names a process that may still wait for its parent, or another one by now.
    if (this.#serverPid() === undefined) rmSync(join(this.data, 'postmaster.pid'), { force: true });
    const patroni = spawn(findProgram('patroni') ?? 'patroni', [this.#configuration], {
      ...{ cwd: this.#folder, ...serverUser, stdio: ['ignore', 'pipe', 'pipe'] },
      // Settings in variables (PATRONI_…, PG…) would come before those of the file.
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
    });
    this.#patroni = patroni;
    for (const stream of [patroni.stdout, patroni.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.#log += chunk;
      });
    }
    patroni.on('error', (error) => {
      this.#log += `${error.message}\n`;
    });
    patroni.once('close', () => {
      if (this.#patroni === patroni) this.#patroni = undefined;
    });
    process.once('exit', this.#atExit);
    if (patroni.pid !== undefined) this.#startGuard(patroni.pid);
  }

  /** Kills Patroni, the server and all their processes at once; resolves when they have ended. */
  async kill(): Promise<void> {
    await untilEnded(this.#kill());
  }

  #kill(): readonly number[] {
    const killed = killTrees(this.#roots());
    this.#patroni = undefined;
    this.#paused = [];
    this.#guard?.kill('SIGKILL');
    this.#guard = undefined;
    process.off('exit', this.#atExit);
    return killed;
  }

  /** Stops all of them where they are: connections stay open, and nothing answers. */
  pause(): void {
    this.#paused = stopTrees(this.#roots());
  }

  /** Sessions of the server go on before Patroni, which is when a former primary could do the most harm. */
  resume(): void {
    for (const pid of this.#paused.toReversed()) signal(pid, 'SIGCONT');
    this.#paused = [];
  }

  #roots(): number[] {
    return [this.#patroni?.pid, this.#serverPid()].filter((pid) => pid !== undefined);
  }

  /**
   * The server's first process, which Patroni detaches from itself. Its working directory tells it from one that has
   * its number by now.
   */
  #serverPid(): number | undefined {
    try {
      const [pid] = readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n');
      return readlinkSync(`/proc/${pid}/cwd`) === this.data ? Number(pid) : undefined;
    } catch {
      // No file, or no such process.
      return undefined;
    }
  }

  /**
   * A shell whose input closes with this process, also when that is killed. It then does what `#atExit` would have
   * done.
   */
  #startGuard(patroni: number): void {
    this.#guard?.kill('SIGKILL');
    this.#guard = spawn('sh', ['-c', guard, 'guard', String(patroni), this.data], {
      ...{ cwd: '/', stdio: ['pipe', 'ignore', 'ignore'], detached: true },
    });
    this.#guard.unref();
    (this.#guard.stdin as unknown as { unref(): void }).unref();
  }
}

const guard = `
read -r line
kill -KILL "$1"
read -r server <"$2/postmaster.pid"
if [ "$(readlink "/proc/$server/cwd")" = "$2" ]; then
  kill -STOP "$server"
  pkill -KILL -P "$server"
  kill -KILL "$server"
fi
rm -rf "\${2%/data}"
`;

function configuration(
  name: string,
  { sql, rest, etcd }: MemberPorts,
  mode: SyncMode,
  folder: string,
  data: string,
) {
  const superuser = { username: 'postgres', password: memberPasswords.postgres };
  const replication = { username: 'replicator', password: memberPasswords.replicator };
  const address = (port: number) => ({
    listen: `127.0.0.1:${port}`,
    connect_address: `127.0.0.1:${port}`,
  });
  return {
    scope: 'vault-test',
    name,
    restapi: address(rest),
    etcd3: { host: `127.0.0.1:${etcd}` },
    bootstrap: {
      dcs: { ...agreed, synchronous_mode_strict: mode === 'strict' },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, { 'wal-segsize': '4' }, 'data-checksums', 'no-sync'],
    },
    postgresql: {
      ...address(sql),
      data_dir: data,
      bin_dir: dirname(findProgram('postgres', serverFolders.toReversed()) ?? ''),
      pgpass: join(folder, 'pgpass'),
      authentication: { superuser, replication, rewind: superuser },
      basebackup: [{ checkpoint: 'fast' }, 'no-sync'],
      pg_hba: [
        'host replication replicator 127.0.0.1/32 scram-sha-256',
        'host all all 127.0.0.1/32 scram-sha-256',
      ],
    },
  };
}
