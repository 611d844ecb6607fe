/**
 * Route 53 in memory, for the provider's own code and a clock of the test: changes are in sync, and visible, a while
 * after they were made; an account may make five requests a second; and a batch is applied whole or not at all.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { World } from '../../../src/base/world.ts';
import { elementsOf, escapeXml, textOf } from '../../../src/dns/providers/route53-xml.ts';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import type { Outbound, OutboundResponse } from '../../../src/net/outbound-http.ts';
import type { SimulatedDns } from './simulated-dns.ts';

export type SimulatedRoute53 = {
  /** Answers what is asked of `https://route53.amazonaws.com`, and passes on everything else. */
  readonly outbound: Outbound;
  /** How many requests there were, by what they do. */
  readonly counts: { zones: number; read: number; change: number; status: number; throttled: number };
};

/** The text of a secret file for it. */
export const route53Secret = 'access_key_id: AKIDEXAMPLE\nsecret_access_key: wJalrXUtnFEMI\n';

/** An account with the zones of `dns` that are asked for. A zone's servers show a change when it is in sync. */
export function simulatedRoute53(
  world: World,
  dns: SimulatedDns,
  zones: readonly string[],
  options: {
    readonly inSyncMs?: number;
    readonly requestMs?: number;
    readonly requestsPerSecond?: number;
    /** Over how long requests are counted: as long as the steps of the clock, where those are longer than a second. */
    readonly windowMs?: number;
    readonly others?: Outbound;
  } = {},
): SimulatedRoute53 {
  const { inSyncMs = 45_000, requestMs = 200, requestsPerSecond = 5, windowMs = 1000, others } = options;
  const counts = { zones: 0, read: 0, change: 0, status: 0, throttled: 0 };
  const changes = new Map<string, number>();
  const recent: number[] = [];
  const sorted = zones
    .map((name, index) => ({ name, id: `Z${index}` }))
    .sort((a, b) => compare(a.name, b.name));
  for (const zone of dns.zones) if (zones.includes(zone.name)) zone.lagsMs = zone.lagsMs.map(() => inSyncMs);

  const answer = (method: string, url: URL, body: string): OutboundResponse => {
    while ((recent[0] ?? Number.POSITIVE_INFINITY) <= world.now() - windowMs) recent.shift();
    if (recent.length >= (requestsPerSecond * windowMs) / 1000) {
      counts.throttled += 1;
      return failure(400, 'Throttling', 'Rate exceeded');
    }
    recent.push(world.now());
    const path = url.pathname.replace('/2013-04-01/', '');
    if (path === 'hostedzonesbyname') {
      counts.zones += 1;
      const from = (url.searchParams.get('dnsname') ?? '').replace(/\.$/, '');
      return zonesPage(sorted.filter(({ name }) => compare(name, from) >= 0));
    }
    const change = /^change\/(\w+)$/.exec(path)?.[1];
    if (change !== undefined) {
      counts.status += 1;
      const isInSync = (changes.get(change) ?? 0) + inSyncMs <= world.now();
      return xml(200, `<GetChangeResponse>${changeInfo(change, isInSync)}</GetChangeResponse>`);
    }
    const id = /^hostedzone\/(Z\d+)\/rrset\/?$/.exec(path)?.[1];
    const zone = sorted.find((one) => one.id === id);
    if (zone === undefined) return failure(404, 'NoSuchHostedZone', 'No hosted zone found');
    if (method === 'GET') {
      counts.read += 1;
      const name = (url.searchParams.get('name') ?? '').replace(/\.$/, '');
      const held = dns.values(name);
      const sets = held.length === 0 ? '' : setXml(name, held);
      return xml(
        200,
        `<R><ResourceRecordSets>${sets}</ResourceRecordSets><IsTruncated>false</IsTruncated></R>`,
      );
    }
    counts.change += 1;
    const refusal = applied(dns, zone.name, body);
    if (refusal !== undefined) return refusal;
    const number = `C${changes.size}`;
    changes.set(number, world.now());
    return xml(
      200,
      `<ChangeResourceRecordSetsResponse>${changeInfo(number, false)}</ChangeResourceRecordSetsResponse>`,
    );
  };

  const outbound: Outbound = async (request) => {
    const url = new URL(request.url);
    if (url.host !== 'route53.amazonaws.com') {
      if (others === undefined) throw new Error(`nobody is at ${url.host}`);
      return others(request);
    }
    if (requestMs > 0) await world.sleep(requestMs, request.signal);
    else await nextTurn();
    return answer(request.method, url, String(request.body ?? ''));
  };
  return { outbound, counts };
}

/** In the order of their labels from the right, as Route 53 lists names. */
function compare(one: string, other: string): number {
  const key = (name: string) => name.split('.').reverse().join('.');
  return key(one) < key(other) ? -1 : Number(key(one) > key(other));
}

function zonesPage(zones: readonly { readonly name: string; readonly id: string }[]): OutboundResponse {
  const listed = zones
    .slice(0, 100)
    .map(({ name, id }) => `<HostedZone><Id>/hostedzone/${id}</Id><Name>${name}.</Name></HostedZone>`);
  const next = zones[100];
  const more =
    next === undefined
      ? ''
      : `<NextDNSName>${next.name}.</NextDNSName><NextHostedZoneId>${next.id}</NextHostedZoneId>`;
  return xml(
    200,
    `<R><HostedZones>${listed.join('')}</HostedZones><IsTruncated>${next !== undefined}</IsTruncated>${more}</R>`,
  );
}

/** All changes of the batch, or none, and why not. */
function applied(dns: SimulatedDns, zone: string, body: string): OutboundResponse | undefined {
  const sets = new Map<string, readonly string[]>();
  for (const change of elementsOf(body, 'Change')) {
    const name = (textOf(change, 'Name') ?? '').replace(/\.$/, '');
    const data = elementsOf(change, 'ResourceRecord').map((one) => unquoteTxt(textOf(one, 'Value') ?? ''));
    const held = sets.get(name) ?? dns.values(name);
    const isCreation = textOf(change, 'Action') === 'CREATE';
    const isRight = isCreation
      ? held.length === 0
      : data.toSorted().join() === held.toSorted().join() && textOf(change, 'TTL') === '60';
    if (!isRight || !name.endsWith(zone)) {
      const message = `Tried to ${textOf(change, 'Action')} the set of ${name}, which is another by now`;
      return xml(
        400,
        `<InvalidChangeBatch><Messages><Message>${message}</Message></Messages></InvalidChangeBatch>`,
      );
    }
    sets.set(name, isCreation ? data : []);
  }
  for (const [name, values] of sets) dns.set(name, values);
  return undefined;
}

function setXml(name: string, values: readonly string[]): string {
  const records = values.map(
    (value) => `<ResourceRecord><Value>${escapeXml(quoteTxt(value))}</Value></ResourceRecord>`,
  );
  return `<ResourceRecordSet><Name>${name}.</Name><Type>TXT</Type><TTL>60</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet>`;
}

function changeInfo(id: string, isInSync: boolean): string {
  return `<ChangeInfo><Id>/change/${id}</Id><Status>${isInSync ? 'INSYNC' : 'PENDING'}</Status></ChangeInfo>`;
}

function failure(status: number, code: string, message: string): OutboundResponse {
  return xml(
    status,
    `<ErrorResponse><Error><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
  );
}

function xml(status: number, text: string): OutboundResponse {
  return {
    status,
    headers: { 'content-type': 'text/xml' },
    body: Buffer.from(`<?xml version="1.0"?>${text}`),
  };
}
