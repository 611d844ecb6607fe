/** Which hosts would break if a certificate expired now: those that have any version of it. */
import type { Deployment } from '../data/shapes.ts';

export type ExpiryOutcome = {
  /** The hosts with any version, by name, each in one of the next three lists. */
  readonly breaking: readonly string[];
  readonly current: readonly string[];
  /** Those with an older version on at least one job. */
  readonly older: readonly { readonly host: string; readonly version: number }[];
  /** Those with a version that has expired already. */
  readonly expired: readonly string[];
  /** Of all these, those that did not report when a report was due. */
  readonly silent: readonly string[];
  /** The hosts whose jobs have not installed any version. */
  readonly waiting: readonly string[];
};

const collator = new Intl.Collator(undefined, { numeric: true });

/** `endOf` is when a version expires, in UTC milliseconds; undefined if it is not known. */
export function expiryOutcome(
  deployments: readonly Deployment[],
  endOf: (version: number) => number | undefined,
  now: number,
): ExpiryOutcome {
  const outcome = {
    breaking: [] as string[],
    current: [] as string[],
    older: [] as { host: string; version: number }[],
    expired: [] as string[],
    silent: [] as string[],
    waiting: [] as string[],
  };
  const byHost = [...Map.groupBy(deployments, ({ host }) => host)];
  for (const [host, jobs] of byHost.sort(([one], [other]) => collator.compare(one, other))) {
    const installed = jobs.flatMap(({ version }) => version ?? []);
    if (installed.length === 0) {
      outcome.waiting.push(host);
      continue;
    }
    outcome.breaking.push(host);
    if (jobs.every(({ state }) => state === 'silent')) outcome.silent.push(host);
    const oldest = installed.reduce((one, other) => Math.min(one, other));
    const newest = jobs[0]?.current_version ?? oldest;
    if ((endOf(oldest) ?? Number.POSITIVE_INFINITY) <= now) outcome.expired.push(host);
    else if (oldest < newest) outcome.older.push({ host, version: oldest });
    else outcome.current.push(host);
  }
  return outcome;
}
