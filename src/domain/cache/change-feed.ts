/**
 * Reports that the vault, a renewal, a deployment or an endpoint has changed, in any process. All watchers share one
 * query per second; without watchers, the database is not read.
 */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import { lastEventOf } from '../../db/audit/audit-events.ts';
import type { Database } from '../../db/database.ts';
import { failedDeploys } from '../../db/tables/deploy-targets.ts';
import { renewalsState } from '../../db/tables/renewals/renewals.ts';

/**
 * `vault`: certificates, versions, authorities, the rights of API keys, or enrollments. `deployments`: another version
 * or result was reported, or a deploy target changed. `endpoints`: an endpoint was changed, or serves something else.
 */
export const changeKinds = ['vault', 'renewals', 'deployments', 'endpoints'] as const;

export type ChangeKind = (typeof changeKinds)[number];

/** Each report with news is recorded as one of these. */
const deploymentNews = [
  ...(['deployment.create', 'deployment.update', 'deployment.delete'] as const),
  ...(['deploy_target.create', 'deploy_target.update', 'deploy_target.delete'] as const),
] as const;

/** Each change of an endpoint, and each check with news. */
const endpointNews = [
  ...(['endpoint.create', 'endpoint.update', 'endpoint.delete', 'endpoint.observe'] as const),
] as const;

/** Changes of an enrollment that do not change the rights of a key. */
const enrollmentNews = ['enrollment.create', 'enrollment.revoke', 'enrollment.delete'] as const;

const lookAgainAfter = second;

type State = { readonly commits: number; readonly seen: Readonly<Record<ChangeKind, string>> };

export class Changes {
  readonly #db: Database;
  readonly #world: World;
  #state: State | undefined;
  #watching = 0;
  #looking: Promise<void> | undefined;
  #unwatched = new AbortController();

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#world = world;
  }

  /**
   * Yields after each poll what has changed, usually nothing. Ends when `signal` is aborted; throws if the database
   * cannot be read.
   */
  async *watch(signal: AbortSignal): AsyncGenerator<readonly ChangeKind[]> {
    this.#watching += 1;
    const over = Promise.withResolvers<void>();
    const end = () => over.resolve();
    signal.addEventListener('abort', end, { once: true });
    try {
      this.#state ??= await this.#read();
      let last = this.#state;
      while (!signal.aborted) {
        this.#looking ??= this.#look();
        await Promise.race([this.#looking, over.promise]);
        if (signal.aborted) return;
        const { seen } = last;
        last = this.#state ?? last;
        yield changeKinds.filter((kind) => seen[kind] !== last.seen[kind]);
      }
    } finally {
      signal.removeEventListener('abort', end);
      this.#watching -= 1;
      if (this.#watching === 0) this.#rest();
    }
  }

  #rest(): void {
    this.#unwatched.abort();
    this.#unwatched = new AbortController();
    this.#state = undefined;
    this.#looking = undefined;
  }

  #look(): Promise<void> {
    const { signal } = this.#unwatched;
    const look = async () => {
      await this.#world.sleep(lookAgainAfter, signal);
      if (signal.aborted) return;
      const state = await this.#read(this.#state);
      if (!signal.aborted) this.#state = state;
    };
    const looking = look().finally(() => {
      if (this.#looking === looking) this.#looking = undefined;
    });
    looking.catch(() => {
      // The watchers get the error too, but there may be none left.
    });
    return looking;
  }

  async #read(before?: State): Promise<State> {
    const commits = await this.#db.commits();
    if (before?.commits === commits) return before;
    const enrollments = await lastEventOf(this.#db.reader, enrollmentNews);
    const vault = `${await this.#db.generation()} ${enrollments}`;
    const renewals = await renewalsState(this.#db.reader);
    const news = await lastEventOf(this.#db.reader, deploymentNews);
    // The first failure of a deploy target is no news yet, and its page shows it.
    const deployments = `${news} ${await failedDeploys(this.#db.reader)}`;
    const endpoints = String(await lastEventOf(this.#db.reader, endpointNews));
    return { commits, seen: { vault, renewals, deployments, endpoints } };
  }
}
