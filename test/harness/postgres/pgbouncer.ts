/** PgBouncer in front of a server of tests, handing out sessions by transaction. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findProgram, needs, type Skip } from '../processes/missing-program.ts';
import { startOnFreePorts } from '../processes/port.ts';
import { serverUser } from './binaries.ts';
import type { PostgresServer } from './postgres.ts';

const folders = ['/usr/sbin'];

/** Options for a test that needs PgBouncer; see `needs`. */
export function needsPgbouncer(): Skip {
  return needs('pgbouncer', folders);
}

/**
 * Starts one with few sessions, so that clients share them; returns the function that gives the URL of a database
 * through it.
 */
export async function startPgbouncer(
  t: Pick<TestContext, 'after'>,
  server: PostgresServer,
  settings: Readonly<Record<string, string>> = {},
): Promise<(database: string) => string> {
  const { ports } = await startOnFreePorts(t, 1, ([port], dir) => {
    const own = { listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'any' };
    const pooling = { pool_mode: 'transaction', default_pool_size: 2, max_client_conn: 200 };
    // It does not run as root, but gives the right away itself.
    const user = serverUser.uid === undefined ? {} : { user: 'nobody' };
    const lines = Object.entries({ ...own, ...pooling, ...user, ...settings }).map(
      ([name, value]) => `${name} = ${value}`,
    );
    const databases = `[databases]\n* = host=127.0.0.1 port=${server.port} user=vault\n`;
    writeFileSync(join(dir, 'pgbouncer.ini'), `${databases}[pgbouncer]\n${lines.join('\n')}\n`);
    return {
      program: findProgram('pgbouncer', folders) ?? 'pgbouncer',
      args: ['pgbouncer.ini'],
      isReady: (log) => log.includes('process up'),
    };
  });
  return (database) => `postgres://vault@127.0.0.1:${ports[0]}/${encodeURIComponent(database)}`;
}
