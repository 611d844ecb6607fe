/**
 * Waits until records are visible where a CA looks: at every authoritative server of their zone, because the CA may
 * query any of them. Caching resolvers are queried last, because they cache a missing name for the SOA minimum (RFC
 * 2308).
 */
import { mapBounded } from '../../base/bounded.ts';
import { hour, minute, second } from '../../base/duration.ts';
import { type DnsContext, DnsProviderError, type TxtRecord } from '../dns-provider.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { type ServerPlace, type ServersOfZone, ZoneServers } from './zone-servers.ts';

export type Wait = {
  readonly timeoutMs: number;
  /** Called before each pause, with a sentence about the servers that do not have a record yet. */
  readonly onWaiting?: ((state: string) => void) | undefined;
};

type Wanted = Pick<TxtRecord, 'name' | 'value'>;

/** What one server returned in a poll, or why it did not answer. */
type PollResult = {
  readonly label: string;
  readonly values?: readonly string[];
  readonly failure?: string | undefined;
};

const firstPause = second;
const maxPause = 15 * second;
/** The longest pause if a person creates the record, which may take hours. */
const maxPauseForPeople = 45 * second;
/** An outage of two seconds may be the very restart that loads the record; three failures in a row are not. */
const failuresTolerated = 3;
/** After this time, a split-horizon zone is assumed, and a configured resolver is queried too. */
const resolverAskedAfter = 5 * minute;
/** How many names are polled at once. */
const namesAtOnce = 10;

/**
 * Polls with pauses of 1 to 15 seconds (45 if the timeout is hours) until every server shows each record's
 * value among the TXT records at its name. A server that fails three times in a row is skipped if another one
 * shows the value. If all of them fail, the resolver is queried instead, and the wait is extended by the
 * negative TTL. If the servers have answered without the value for five minutes, a configured resolver is
 * queried too, and its answer counts.
 *
 * Throws DnsProviderError after `timeoutMs`, with what each one showed, and when the signal is aborted.
 */
export async function waitUntilVisible(
  { world, resolver }: Pick<DnsContext, 'world' | 'resolver'>,
  records: readonly Wanted[],
  { timeoutMs, onWaiting }: Wait,
  signal: AbortSignal,
): Promise<void> {
  const start = world.elapsed();
  const looks = records.map((record) => new RecordPoll(record, resolver));
  let missing = looks;
  const longest = timeoutMs > hour ? maxPauseForPeople : maxPause;
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longest)) {
    const elapsed = world.elapsed() - start;
    const servers = new ZoneServers(resolver);
    await mapBounded(namesAtOnce, missing, async (look) => {
      if (!signal.aborted) await look.at(servers, elapsed);
    });
    missing = missing.filter(({ isSeen }) => !isSeen);
    const [first] = missing;
    if (first === undefined) return;
    if (signal.aborted) throw canceled(first.record.name, signal);
    const late = missing.find(({ moreTime }) => elapsed >= timeoutMs + moreTime);
    if (late !== undefined) throw late.failure(elapsed);
    onWaiting?.(first.state);
    const left = Math.min(...missing.map(({ moreTime }) => timeoutMs + moreTime - elapsed));
    await world.sleep(Math.min(pause, left), signal);
    if (signal.aborted) throw canceled(first.record.name, signal);
  }
}

/** One record and its latest poll results. */
class RecordPoll {
  readonly record: Wanted;
  readonly #resolver: DnsResolver;
  readonly #failures = new Map<string, number>();
  #servers: ServersOfZone | undefined;
  #isDelegationKnown = false;
  isSeen = false;
  /** A sentence that names the servers without the record. */
  state = '';
  /** The negative TTL in milliseconds if only the resolver can be queried. */
  moreTime = 0;

  constructor(record: Wanted, resolver: DnsResolver) {
    this.record = record;
    this.#resolver = resolver;
  }

  async at(servers: ZoneServers, elapsed: number): Promise<void> {
    try {
      this.#servers ??= await servers.above(this.record.name);
      this.isSeen = await this.#isVisible(servers, this.#servers, elapsed);
    } catch (error) {
      // The servers may be found at the next poll.
      this.state = error instanceof Error ? error.message : String(error);
    }
  }

  failure(elapsed: number): DnsProviderError {
    const { name, value } = this.record;
    const seconds = Math.round(elapsed / second);
    return new DnsProviderError(
      `the TXT record ${JSON.stringify(value)} at ${name} is not visible after ${seconds} s: ${this.state}`,
    );
  }

  async #isVisible(servers: ZoneServers, { zone, places }: ServersOfZone, elapsed: number): Promise<boolean> {
    const { configured } = this.#resolver;
    const { name, value } = this.record;
    if (places.length === 0 && configured === undefined) {
      throw new DnsProviderError(`no name servers found for ${name} or its parent domains`);
    }
    const results = await Promise.all(
      places.map(({ label, at }) => pollServer(label, at, () => this.#resolver.txt(name, at))),
    );
    for (const { label, failure } of results) {
      const before = this.#failures.get(label) ?? 0;
      this.#failures.set(label, failure === undefined ? 0 : before + 1);
    }
    const shown = results.filter(({ values }) => values?.includes(value));
    const tolerated = results.filter(({ label }) => (this.#failures.get(label) ?? 0) >= failuresTolerated);
    if (shown.length > 0 && shown.length + tolerated.length === results.length) return true;
    const missing = results.filter((result) => !shown.includes(result));
    const states = missing.map(sentence);
    if (shown.length > 0) states.push(`${shown.length} of ${results.length} servers have it`);
    const isUnreachable = tolerated.length === results.length;
    const isLast = configured !== undefined && elapsed >= resolverAskedAfter;
    if (isUnreachable || isLast) {
      const label = configured === undefined ? "the system's resolver" : `the resolver ${configured}`;
      const result = await pollServer(label, label, () => this.#resolver.txt(name));
      if (result.values?.includes(value)) return true;
      states.push(sentence(result));
      if (isUnreachable && zone !== undefined && this.moreTime === 0) {
        // Without a negative TTL nothing is cached, so the wait is not extended.
        this.moreTime = await this.#resolver.negativeTtl(zone).catch(() => 0);
      }
    }
    this.state = states.join('; ');
    await this.#lookAround(servers, places, results);
    return false;
  }

  /** If no server shows the record, the name may be its own zone; the next poll may find more servers. */
  async #lookAround(
    servers: ZoneServers,
    places: readonly ServerPlace[],
    results: readonly PollResult[],
  ): Promise<void> {
    const answered = results.filter(({ failure }) => failure === undefined);
    if (
      !this.#isDelegationKnown &&
      answered.length > 0 &&
      answered.every(({ values }) => values?.length === 0)
    ) {
      this.#isDelegationKnown = true;
      const own = await servers.delegated(this.record.name, places);
      if (own !== undefined) this.#servers = own;
      return;
    }
    if (this.#servers?.isUnsure === true || places.some(({ at }) => at === undefined)) {
      this.#servers = undefined;
      this.#isDelegationKnown = false;
    }
  }
}

function canceled(name: string, signal: AbortSignal): DnsProviderError {
  return new DnsProviderError(`waiting for the TXT record at ${name} was canceled`, { cause: signal.reason });
}

async function pollServer(
  label: string,
  at: string | undefined,
  question: () => Promise<string[]>,
): Promise<PollResult> {
  if (at === undefined) return { label, failure: 'has no address' };
  try {
    return { label, values: await question() };
  } catch (error) {
    return {
      label,
      failure: `could not be queried: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

const maxValues = 5;
const maxValueLength = 80;

function sentence({ label, values = [], failure }: PollResult): string {
  if (failure !== undefined) return `${label} ${failure}`;
  if (values.length === 0) return `${label} has no TXT record`;
  const some = values.slice(0, maxValues).map((value) => JSON.stringify(value.slice(0, maxValueLength)));
  const more = values.length > maxValues ? ` and ${values.length - maxValues} more` : '';
  return `${label} has ${some.join(', ')}${more}`;
}
