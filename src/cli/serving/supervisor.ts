/**
 * What the vault tells systemd about itself (sd_notify(3)). Node has no unix datagram sockets, so systemd's own program
 * carries each message; where nobody asked to be told, or that program is missing, the vault runs as ever.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { second } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import type { Environment } from '../terminal/terminal.ts';

const messenger = 'systemd-notify';
const longestSend = 10 * second;

export type Supervisor = {
  /** How often at least it wants to hear WATCHDOG=1, in milliseconds; undefined where it does not watch. */
  readonly watchdogInterval: number | undefined;
  /** Sends assignments such as READY=1, after those that were told before. Never rejects: that nobody listens must not stop the vault. */
  readonly tell: (...assignments: readonly string[]) => Promise<void>;
};

/** The supervisor that the environment names, if any. */
export function supervisorIn(environment: Environment, log: Log): Supervisor {
  const { NOTIFY_SOCKET, PATH } = environment;
  if (!NOTIFY_SOCKET) return { watchdogInterval: undefined, tell: async () => undefined };
  let hasFailed = false;
  const carry = async (assignments: readonly string[]) => {
    try {
      await send(assignments, { NOTIFY_SOCKET, PATH: PATH || '/usr/local/bin:/usr/bin:/bin' });
      hasFailed = false;
    } catch (error) {
      // Once: the watchdog will try again and again.
      if (!hasFailed) log.warn({ err: error }, 'systemd cannot be told how the vault is');
      hasFailed = true;
    }
  };
  // Each message is a process, and the one that began first need not be the first to arrive.
  let before = Promise.resolve();
  return {
    watchdogInterval: watchdogInterval(environment),
    tell: (...assignments) => {
      before = before.then(() => carry(assignments));
      return before;
    },
  };
}

/** WATCHDOG_PID names the process that is meant, where there is one: the variables reach the children of it too. */
function watchdogInterval({ WATCHDOG_USEC, WATCHDOG_PID }: Environment): number | undefined {
  if (WATCHDOG_PID && WATCHDOG_PID !== String(process.pid)) return undefined;
  const microseconds = Number(WATCHDOG_USEC);
  return microseconds > 0 ? microseconds / 1000 : undefined;
}

async function send(assignments: readonly string[], env: Record<string, string>): Promise<void> {
  const child = spawn(messenger, assignments, {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: longestSend,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`${messenger} ended with ${signal ?? code}: ${said.trim().slice(0, 1000)}`);
}
