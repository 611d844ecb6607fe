/** A process of the client installer that watches the vault. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ClientLaunch, type Machine, machine } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { eventually } from '../harness/eventually.ts';
import type { Outcome } from '../harness/processes/vault-process.ts';
import type { Place } from './places.ts';

export type Watcher = {
  readonly pid: number;
  /** What it has said so far; needs no end of the process. */
  readonly log: () => string;
  /** Its pauses, in seconds, once it has had as many as it may. They take no time, and the next one has no end. */
  readonly paused: () => Promise<number[]>;
  readonly ended: Promise<Outcome>;
  /** Sends SIGTERM. */
  readonly stop: () => Promise<Outcome>;
};

/** Starts it for the only job of the machine; it is stopped when the test ends. */
export async function watching(
  t: { after(end: () => unknown): unknown },
  client: Machine,
  { pauses = 0, ...launch }: { readonly pauses?: number } & ClientLaunch = {},
): Promise<Watcher> {
  const [job = ''] = client.jobs();
  const inHome = (name: string) => join(client.home, name);
  const read = (name: string) => (existsSync(inHome(name)) ? readFileSync(inHome(name), 'utf8') : '');
  for (const name of ['watcher', 'pauses']) rmSync(inHome(name), { force: true });
  const from = client.syslog().length;
  // exec keeps the process id.
  client.fake('start', `echo $$ >"${inHome('watcher')}"; exec "$@"`);
  // The clocks of time limits sleep, too.
  if (pauses > 0)
    client.fake(
      'sleep',
      `real=$(PATH="${process.env.PATH}" command -v sleep)
      ! tr '\\0' ' ' <"/proc/$PPID/cmdline" | grep ' clock ' >/dev/null || exec "$real" "$1"
      echo "$1" >>"${inHome('pauses')}"
      [ "$(wc -l <"${inHome('pauses')}")" -lt ${pauses} ] || exec "$real" 600`,
    );
  const environment = {
    // Without a fake, pauses take time.
    CERTIFICATE_VAULT_PAUSE_SECONDS: pauses > 0 ? '3' : '0',
    CERTIFICATE_VAULT_FETCH_TRIES: '1',
    ...launch.environment,
  };
  const ended = client.run(['--run', job, '--watch'], {
    script: client.copy(job),
    ...launch,
    environment,
    through: [join(client.bin, 'start')],
  });
  let isRunning = true;
  void ended.then(() => {
    isRunning = false;
  });
  const pid = Number(
    await eventually('the watching process starts', () => /^\d+\n/.exec(read('watcher'))?.[0]),
  );
  const stop = () => {
    if (isRunning) process.kill(pid, 'SIGTERM');
    return ended;
  };
  t.after(stop);
  const taken = () => read('pauses').split('\n').slice(0, -1).map(Number);
  return {
    ...{ pid, ended, stop },
    log: () => client.syslog().slice(from),
    paused: () =>
      eventually(
        () => `${taken().length} of ${pauses} pauses: ${client.syslog().slice(from)}`,
        () => taken().length >= pauses && taken(),
      ),
  };
}

/** A job whose requests go through a relay. */
export async function watched(t: TestContext, place: Partial<Place> = {}, options: readonly string[] = []) {
  const vault = await clientVault(t, place);
  const client = machine(t, place);
  const relay = await vault.relay();
  const installed = await vault.install(client, ['--server', relay.url, '--watch', ...options]);
  assert.equal(installed.code, 0, installed.stderr);
  relay.seen.length = 0;
  return { vault, client, relay, installed };
}

/** Waits until the vault holds the request of the process. */
export function held(
  relay: { readonly seen: readonly { method: string; path: string }[] },
  after = 0,
): Promise<number> {
  const isHeld = () => relay.seen.findIndex(({ method }, at) => at >= after && method === 'HEAD') + 1;
  return eventually('the process requests the next version', () => isHeld() > 0 && isHeld());
}
