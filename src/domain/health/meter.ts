/**
 * The metrics of the vault, in Prometheus terms. Each counter is looked up once and then only incremented, so that
 * counting costs a request nothing, whether or not the metrics are ever scraped.
 */
import { type FileName, fileNames } from '../versions/formats.ts';

/** Values by the full name of their series, `vault_downloads_total{artifact="private.key"}`. */
export type Series = Readonly<Record<string, number>>;

type Count = { value: number };

/** Why an authentication failed. */
const authenticationFailures = [
  'key_unknown',
  'key_revoked',
  'key_expired',
  'key_replaced',
  'key_network',
  'key_certificate',
  'enrollment',
  'password',
  'second_factor',
  'passkey',
  'setup_link',
] as const;

type AuthenticationFailure = (typeof authenticationFailures)[number];

const renewalResults = ['succeeded', 'failed'] as const;

/** Kinds of requests: durations differ between these, not within them. */
type RequestKind = 'download' | 'api' | 'events' | 'other';

/** The result of an ACME order; `refused` before it was created. */
export type AcmeOrderResult = 'issued' | 'failed' | 'refused';

/** Pairs of client and issuer with their own series. Later ones share a series, so that the number is bounded. */
const maxOrdering = 200;
const others = { client: 'other', issuer: 'other' };

const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const orderSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];
const renewalSeconds = [0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];

/** A histogram of durations, in seconds. */
class Timing {
  readonly #name: string;
  readonly #labels: string;
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(name: string, labels: string, bounds: readonly number[]) {
    this.#name = name;
    this.#labels = labels;
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  add(seconds: number): void {
    let index = 0;
    while (index < this.#bounds.length && seconds > (this.#bounds[index] ?? 0)) index += 1;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += seconds;
  }

  writeTo(series: Record<string, number>): void {
    const before = this.#labels === '' ? '' : `${this.#labels},`;
    let all = 0;
    for (const [index, count] of this.#counts.entries()) {
      all += count;
      series[`${this.#name}_bucket{${before}le="${this.#bounds[index] ?? '+Inf'}"}`] = all;
    }
    const labels = this.#labels === '' ? '' : `{${this.#labels}}`;
    series[`${this.#name}_sum${labels}`] = this.#sum;
    series[`${this.#name}_count${labels}`] = all;
  }
}

type Asked = { readonly time: Timing; readonly byStatus: Map<number, Count> };

export class Meter {
  readonly #counts = new Map<string, Count>();
  readonly #requestTimes: Readonly<Record<RequestKind, Timing>>;
  readonly #renewalTime = new Timing('vault_renewal_duration_seconds', '', renewalSeconds);
  readonly #orderTime = new Timing('vault_acme_order_duration_seconds', '', orderSeconds);
  readonly #ordering = new Set<string>();
  readonly #asked = new Map<string, Asked>();
  readonly #downloads = this.#countsOf('vault_downloads_total', 'artifact', fileNames);
  readonly #unchanged = this.#countsOf('vault_downloads_not_modified_total', 'artifact', fileNames);
  readonly #failures = this.#countsOf(
    'vault_authentication_failures_total',
    'reason',
    authenticationFailures,
  );
  readonly #renewals = this.#countsOf('vault_renewals_total', 'result', renewalResults);

  constructor() {
    const time = (kind: RequestKind) =>
      new Timing('vault_http_request_duration_seconds', `kind="${kind}"`, requestSeconds);
    this.#requestTimes = {
      download: time('download'),
      api: time('api'),
      events: time('events'),
      other: time('other'),
    };
  }

  /** A request that took `ms` milliseconds; `route` is its path in the table, or what else responded. */
  requested(route: string, status: number, ms: number): void {
    let asked = this.#asked.get(route);
    if (asked === undefined) {
      asked = { time: this.#requestTimes[kindOf(route)], byStatus: new Map() };
      this.#asked.set(route, asked);
    }
    let count = asked.byStatus.get(status);
    if (count === undefined) {
      count = this.#count(`vault_http_requests_total{route="${route}",status="${status}"}`);
      asked.byStatus.set(status, count);
    }
    count.value += 1;
    // The clock may have been set back.
    asked.time.add(Math.max(0, ms) / 1000);
  }

  downloaded(artifact: FileName): void {
    this.#downloads[artifact].value += 1;
  }

  /** The client has the current version already. */
  unchanged(artifact: FileName): void {
    this.#unchanged[artifact].value += 1;
  }

  authenticationFailed(reason: AuthenticationFailure): void {
    this.#failures[reason].value += 1;
  }

  renewed(result: (typeof renewalResults)[number], ms: number): void {
    this.#renewals[result].value += 1;
    this.#renewalTime.add(Math.max(0, ms) / 1000);
  }

  /** An order of an ACME client at an issuer; `ms` from its request to its certificate. */
  ordered(
    result: AcmeOrderResult,
    by: { readonly client: string; readonly issuer: string },
    ms?: number,
  ): void {
    const pair = `${by.client} ${by.issuer}`;
    const isKnown = this.#ordering.has(pair) || this.#ordering.size < maxOrdering;
    if (isKnown) this.#ordering.add(pair);
    const { client, issuer } = isKnown ? by : others;
    const labels = `client=${quoted(client)},issuer=${quoted(issuer)},result="${result}"`;
    const name = `vault_acme_orders_total{${labels}}`;
    const count = this.#counts.get(name) ?? this.#count(name);
    count.value += 1;
    if (ms !== undefined) this.#orderTime.add(Math.max(0, ms) / 1000);
  }

  /** All current values; they only grow. */
  series(): Series {
    const series: Record<string, number> = {};
    for (const [name, { value }] of this.#counts) series[name] = value;
    for (const time of Object.values(this.#requestTimes)) time.writeTo(series);
    this.#renewalTime.writeTo(series);
    this.#orderTime.writeTo(series);
    return series;
  }

  #countsOf<K extends string>(name: string, label: string, values: readonly K[]): Readonly<Record<K, Count>> {
    const pairs = values.map((value) => [value, this.#count(`${name}{${label}="${value}"}`)]);
    return Object.fromEntries(pairs) as Record<K, Count>;
  }

  #count(name: string): Count {
    const count = { value: 0 };
    this.#counts.set(name, count);
    return count;
  }
}

/** A label; names have neither quotes nor control characters. */
function quoted(value: string): string {
  return `"${value.replace(/["\\\p{C}]/gu, '_')}"`;
}

function kindOf(route: string): RequestKind {
  if (fileNames.some((name) => route.endsWith(`/{name}/${name}`))) return 'download';
  // These last until the client closes the connection.
  if (route === '/api/v1/events') return 'events';
  return route.startsWith('/api/') ? 'api' : 'other';
}
