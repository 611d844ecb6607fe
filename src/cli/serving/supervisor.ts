/**
 * Notifies systemd about the state of the vault (sd_notify(3)). Node has no unix datagram sockets, so systemd-notify
 * sends each message. Without systemd, or without that program, the vault runs without notifications.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { second } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import type { Environment } from '../terminal/terminal.ts';

const messenger = 'systemd-notify';
const maxSend = 10 * second;

export type Supervisor = {
  /** The watchdog interval in milliseconds; undefined without a watchdog. */
  readonly watchdogInterval: number | undefined;
  /**
   * Sends assignments such as READY=1, after earlier ones. Never rejects, because a failed notification must not stop
   * the vault.
   */
  readonly notify: (...assignments: readonly string[]) => Promise<void>;
};

/** The supervisor in the environment. Without one, `notify` does nothing. */
export function supervisorIn(environment: Environment, log: Log): Supervisor {
  const { NOTIFY_SOCKET, PATH } = environment;
  if (!NOTIFY_SOCKET) return { watchdogInterval: undefined, notify: async () => undefined };
  let hasFailed = false;
  const sendOrWarn = async (assignments: readonly string[]) => {
    try {
      await send(assignments, { NOTIFY_SOCKET, PATH: PATH || '/usr/local/bin:/usr/bin:/bin' });
      hasFailed = false;
    } catch (error) {
      // Log the first failure only, because the watchdog keeps retrying.
      if (!hasFailed) log.warn({ err: error }, 'sd_notify failed');
      hasFailed = true;
    }
  };
  // Each message is a process of its own; wait for the previous one to keep the order.
  let before = Promise.resolve();
  return {
    watchdogInterval: watchdogInterval(environment),
    notify: (...assignments) => {
      before = before.then(() => sendOrWarn(assignments));
      return before;
    },
  };
}

/** WATCHDOG_PID names the watched process; child processes inherit the variables, too. */
function watchdogInterval({ WATCHDOG_USEC, WATCHDOG_PID }: Environment): number | undefined {
  if (WATCHDOG_PID && WATCHDOG_PID !== String(process.pid)) return undefined;
  const microseconds = Number(WATCHDOG_USEC);
  return microseconds > 0 ? microseconds / 1000 : undefined;
}

async function send(assignments: readonly string[], env: Record<string, string>): Promise<void> {
  const child = spawn(messenger, assignments, {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: maxSend,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code, signal] = await once(child, 'close');
  if (code !== 0)
    throw new Error(`${messenger} exited with ${signal ?? code}: ${said.trim().slice(0, 1000)}`);
}
