/**
 * Vault nodes of one database: the executable with a data directory, a port and perhaps a clock of its own for each of
 * them.
 */
import { copyFileSync, globSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { freePorts } from '../harness/processes/port.ts';
import { ask, type Place, type Server, type Started, startServer } from './running-vault.ts';

/** How long a node may take until it is ready again on a busy machine, in milliseconds. */
const patience = 90_000;

export type NodesOrder = {
  readonly program: string;
  /** Gets a folder for each node. */
  readonly folder: string;
  readonly database: string;
  /** For each node the seconds by which its clock is ahead, if faketime is installed. */
  readonly skews: readonly number[];
};

export class TormentedNode {
  readonly name: string;
  readonly place: Place;
  readonly origin: string;
  /** What all its processes wrote to stderr so far, apart from the running one. */
  #log = '';
  #started: Started | undefined;
  #server: Server | undefined;
  isPaused = false;

  constructor(name: string, place: Place, origin: string) {
    this.name = name;
    this.place = place;
    this.origin = origin;
  }

  get log(): string {
    return this.#log + (this.#started?.log() ?? '');
  }

  /**
   * Starts it unless it runs, again and again as a service manager does, until it listens. Rejects with the last error
   * after `longest` milliseconds; it is not running then.
   */
  async start(longest: number = patience): Promise<void> {
    const deadline = performance.now() + longest;
    while (this.#server === undefined) {
      const started = startServer(this.place);
      this.#started = started;
      try {
        this.#server = await started.listening;
        if (this.#server === undefined) return this.#ended();
      } catch (error) {
        this.#ended();
        if (performance.now() > deadline) throw error;
        await delay(200);
      }
    }
  }

  /** Ends it, also while it is paused or has not listened yet. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<string> {
    const ended = await this.#started?.kill(signal);
    this.#ended();
    this.isPaused = false;
    return ended ?? '';
  }

  pause(): void {
    if (this.#server === undefined) return;
    process.kill(this.#server.pid, 'SIGSTOP');
    this.isPaused = true;
  }

  resume(): void {
    if (this.#server !== undefined && this.isPaused) process.kill(this.#server.pid, 'SIGCONT');
    this.isPaused = false;
  }

  /** Waits until it says that it is ready. */
  async ready(): Promise<void> {
    const deadline = performance.now() + patience;
    for (let last = 'no answer'; ; await delay(50)) {
      const answer = await ask(`${this.origin}/api/v1/ready`).catch((error) => {
        last = String(error);
      });
      if (answer?.status === 200) return;
      if (answer !== undefined) last = `${answer.status} ${answer.body}`;
      if (performance.now() > deadline) throw new Error(`${this.name} is not ready: ${last}\n${this.log}`);
    }
  }

  #ended(): void {
    this.#log += this.#started?.log() ?? '';
    this.#started = undefined;
    this.#server = undefined;
  }
}

/** Lays out the nodes; none runs yet, and only the first has a master key once a command has made it. */
export async function layNodes(order: NodesOrder): Promise<readonly TormentedNode[]> {
  const ports = await freePorts(order.skews.length);
  return order.skews.map((skew, index) => {
    const data = join(order.folder, `node-${index + 1}`);
    mkdirSync(data, { mode: 0o700 });
    const environment = {
      ...{ CERTVAULT_DATABASE: order.database, CERTVAULT_ALLOW_OUTBOUND: loopbackSetting },
      ...{ TMPDIR: order.folder, ...clock(skew) },
    };
    const listen = `127.0.0.1:${ports[index]}`;
    return new TormentedNode(
      `node-${index + 1}`,
      { program: order.program, data, environment, listen },
      `http://${listen}`,
    );
  });
}

/** Gives all nodes the master key of the first one. */
export function shareKey([first, ...others]: readonly TormentedNode[]): void {
  for (const { place } of others) {
    copyFileSync(join(first?.place.data ?? '', 'master.key'), join(place.data, 'master.key'));
  }
}

/** The library that lies about the time, if it is installed. */
export function faketimeLibrary(): string | undefined {
  return globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0];
}

function clock(skew: number): Record<string, string> {
  const faketime = faketimeLibrary();
  if (skew === 0 || faketime === undefined) return {};
  const sign = skew > 0 ? '+' : '-';
  return { LD_PRELOAD: faketime, FAKETIME: `${sign}${Math.abs(skew)}s`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
