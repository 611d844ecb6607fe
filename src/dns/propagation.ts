/**
 * Waiting until a record can be seen where a CA looks: at every authoritative server of its zone, because the CA may ask
 * any of them, or at the resolver that was configured, where those cannot be reached from here (split horizon).
 */
import { isIPv6 } from 'node:net';
import { second } from '../base/duration.ts';
import { upwards } from './dns-name.ts';
import { type DnsContext, DnsProviderError, type TxtRecord } from './dns-provider.ts';
import type { DnsResolver } from './dns-resolver.ts';

export type Wait = {
  readonly timeoutMs: number;
  /** Called before each pause, with a sentence about who does not show the record yet. */
  readonly onWaiting?: ((state: string) => void) | undefined;
};

/** Somebody to ask. `at` is `ip:port`, and missing where a name server has no address. */
type Place = { readonly label: string; readonly at?: string };

/** What one place showed at a look, or why it did not answer. */
type Sight = { readonly place: Place; readonly values?: readonly string[]; readonly failure?: string };

const firstPause = second;
const longestPause = 15 * second;
/** An outage of two seconds may be the very restart that loads the record; three failures in a row are not. */
const failuresTolerated = 3;

/**
 * Looks again and again, with pauses of 1 to 15 seconds, until everybody who was asked shows the value among the TXT
 * records at the name. A server that failed at three looks in a row is passed over, provided that another one shows the
 * value: the CA cannot reach it either, or reaches it where we cannot. Throws DnsProviderError after `timeoutMs`, with
 * what each one showed, and when the signal is aborted.
 */
export async function waitUntilVisible(
  { world, resolver }: Pick<DnsContext, 'world' | 'resolver'>,
  { name, value }: Pick<TxtRecord, 'name' | 'value'>,
  { timeoutMs, onWaiting }: Wait,
  signal: AbortSignal,
): Promise<void> {
  const deadline = world.now() + timeoutMs;
  const failures = new Map<string, number>();
  let places: readonly Place[] | undefined;
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
    if (signal.aborted) throw givenUp(name, signal);
    let state: string;
    try {
      places ??= await placesToLook(resolver, name);
      const sights = await Promise.all(places.map((place) => look(resolver, name, place)));
      for (const { place, failure } of sights) {
        failures.set(place.label, failure === undefined ? 0 : (failures.get(place.label) ?? 0) + 1);
      }
      // Who has no address now may have one at the next look.
      if (places.some(({ at }) => at === undefined)) places = undefined;
      const shown = sights.filter(({ values }) => values?.includes(value));
      const tolerated = sights.filter(({ place }) => (failures.get(place.label) ?? 0) >= failuresTolerated);
      if (shown.length > 0 && shown.length + tolerated.length === sights.length) return;
      const missing = sights.filter((sight) => !shown.includes(sight));
      state = `${missing.map(sentence).join('; ')}${shown.length > 0 ? `; ${shown.length} of ${sights.length} show it` : ''}`;
    } catch (error) {
      // Whoever names the servers may be back at the next look.
      state = error instanceof Error ? error.message : String(error);
    }
    if (signal.aborted) throw givenUp(name, signal);
    const left = deadline - world.now();
    if (left <= 0) {
      throw new DnsProviderError(
        `the TXT record ${JSON.stringify(value)} at ${name} cannot be seen after ${Math.round(timeoutMs / second)} s: ${state}`,
      );
    }
    onWaiting?.(state);
    await world.sleep(Math.min(pause, left), signal);
  }
}

function givenUp(name: string, signal: AbortSignal): DnsProviderError {
  return new DnsProviderError(`waiting for the TXT record at ${name} was given up`, { cause: signal.reason });
}

/** The configured resolver, or the authoritative servers of the closest zone above the name. */
async function placesToLook(resolver: DnsResolver, name: string): Promise<readonly Place[]> {
  const { configured } = resolver;
  if (configured !== undefined) return [{ label: `the resolver ${configured}`, at: configured }];
  for (const zone of upwards(name)) {
    const servers = await resolver.nameServers(zone);
    if (servers.length === 0) continue;
    const places = await Promise.all(servers.map((server) => placesOf(resolver, server)));
    return places.flat();
  }
  throw new DnsProviderError(`no name servers are known for ${name} or any domain above it`);
}

async function placesOf(resolver: DnsResolver, server: string): Promise<readonly Place[]> {
  const addresses = await resolver.addresses(server).catch(() => {
    // The same as no address: its place says so, and the others decide.
    return [];
  });
  if (addresses.length === 0) return [{ label: server }];
  return addresses.map((ip) => ({ label: `${server} (${ip})`, at: isIPv6(ip) ? `[${ip}]:53` : `${ip}:53` }));
}

async function look(resolver: DnsResolver, name: string, place: Place): Promise<Sight> {
  if (place.at === undefined) return { place, failure: 'has no address' };
  try {
    return { place, values: await resolver.txt(name, place.at) };
  } catch (error) {
    return { place, failure: `gives no answer: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const mostValues = 5;
const longestValue = 80;

function sentence({ place, values = [], failure }: Sight): string {
  if (failure !== undefined) return `${place.label} ${failure}`;
  if (values.length === 0) return `${place.label} shows no TXT record`;
  const some = values.slice(0, mostValues).map((value) => JSON.stringify(value.slice(0, longestValue)));
  const more = values.length > mostValues ? ` and ${values.length - mostValues} more` : '';
  return `${place.label} shows ${some.join(', ')}${more}`;
}
