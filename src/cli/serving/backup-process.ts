/**
 * Scheduled backups run in a child process of this executable: a disk that is slow or hangs holds up neither requests
 * nor the end of the server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { deserialize, serialize } from 'node:v8';
import { hour, second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { Keyring } from '../../crypto/secrets/keyring.ts';
import { MasterKey } from '../../crypto/secrets/master-key.ts';
import type { PlanOutcome } from '../../domain/backup/backup-schedule.ts';
import { ownProgram, scheduledBackup } from '../../net/own-program.ts';
import type { Settings } from '../settings/settings.ts';
import type { Environment } from '../terminal/terminal.ts';

/** A backup that takes longer has failed. */
const maxBackup = hour;

/** How long a backup may take to remove its draft when the server stops. */
const maxCleanUp = 10 * second;

/** What the child process answers. */
export type BackupAnswer = PlanOutcome | { readonly failure: string; readonly hint?: string | undefined };

/** Runs the plan of these settings in child processes, one at a time. */
export class BackupProcess {
  readonly #settings: Settings;
  readonly #keyring: Keyring;
  readonly #environment: Environment;
  readonly #world: World;
  /** A child process that did not end when it was told to. */
  #hanging: ChildProcess | undefined;

  constructor(settings: Settings, keyring: Keyring, environment: Environment, world: World) {
    this.#settings = settings;
    this.#keyring = keyring;
    this.#environment = environment;
    this.#world = world;
  }

  /**
   * As `backUpByPlan`; `signal` ends it. Throws OperatorError with the message of the child process, or if that takes
   * longer than an hour or a previous one still hangs.
   */
  async run(signal: AbortSignal): Promise<PlanOutcome> {
    const { backups } = this.#settings;
    if (this.#hanging !== undefined) {
      throw new OperatorError(`the previous backup still hangs; check the disk of ${backups?.directory}`);
    }
    const { path, script } = ownProgram();
    const child = spawn(path, [...script, scheduledBackup], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: this.#environment,
    });
    child.stdin.on('error', () => {
      // The child exited before reading its input; its exit code shows why.
    });
    child.stdin.end(requestText(this.#settings, this.#keyring).expose());
    const over = new AbortController();
    const stop = () => void child.kill('SIGTERM');
    signal.addEventListener('abort', stop, { once: true });
    try {
      const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
      const outcome = await Promise.race([ended, this.#tooLong(signal, over.signal)]);
      if (outcome !== undefined) return answerOf(...outcome);
      this.#abandon(child);
      throw new OperatorError(`the backup timed out after an hour; check the disk of ${backups?.directory}`);
    } finally {
      over.abort();
      signal.removeEventListener('abort', stop);
    }
  }

  /** Resolves after the time of a backup, or soon after `signal`. */
  async #tooLong(signal: AbortSignal, over: AbortSignal): Promise<undefined> {
    await this.#world.sleep(maxBackup, AbortSignal.any([signal, over]));
    if (!over.aborted && signal.aborted) await this.#world.sleep(maxCleanUp, over);
  }

  /** Kills a process. One that waits for a disk ends when the disk answers, and holds up nothing here. */
  #abandon(child: ChildProcess): void {
    this.#hanging = child;
    child.once('close', () => {
      this.#hanging = undefined;
    });
    child.kill('SIGKILL');
    child.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }
}

function answerOf(said: string, errors: string, [code, signal]: unknown[]): PlanOutcome {
  if (code !== 0) {
    const message = errors.split('\n')[0]?.replace(/^(?:certificate-)?vault: /, '') ?? '';
    const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
    throw new OperatorError(message === '' ? `the backup process ${how}` : message);
  }
  const answer = JSON.parse(said) as BackupAnswer;
  if (!('failure' in answer)) return answer;
  throw new OperatorError(answer.failure, answer.hint === undefined ? {} : { hint: answer.hint });
}

type Request = { readonly settings: Settings; readonly keys: readonly Uint8Array[] };

function requestText(settings: Settings, { all }: Keyring): Secret {
  const keys = all.map((key) => key.exported().expose());
  return new Secret(serialize({ settings, keys } satisfies Request));
}

/** The settings and the master keys of the parent process, from its request. */
export function backupRequest(request: Buffer): { readonly settings: Settings; readonly keyring: Keyring } {
  const { settings, keys } = deserialize(request) as Request;
  const [first, ...others] = keys.map((key) => new MasterKey(new Secret(Buffer.from(key))));
  if (first === undefined) throw new Error('a backup needs a master key');
  const keyring = new Keyring(settings.masterKeyFile, first);
  for (const key of others) keyring.add(key);
  return { settings, keyring };
}
