/** Finds the hosted zone of a Route 53 account for a record. */
import { z } from 'zod';
import type { TxtRecord } from '../dns-provider.ts';
import { plainName } from '../resolver/dns-name.ts';
import type { RecentZones } from '../resolver/recent-zones.ts';
import { zoneCandidates, zoneMissing } from './account-zone.ts';
import type { ApiAnswer, JsonApi } from './json-api.ts';
import { elementsOf, textOf } from './route53-xml.ts';

export const title = 'Route 53';
export const version = '/2013-04-01';

/** Far more than an account can have. */
const maxPages = 200;

export type HostedZone = { readonly id: string; readonly name: string };

/**
 * The id of the public zone with the longest name that contains the record. The zones under the shortest candidate are
 * listed together, at most once a minute. Throws DnsProviderError if there is none.
 */
export async function zoneId(
  api: JsonApi,
  known: RecentZones<HostedZone>,
  record: TxtRecord,
  signal: AbortSignal,
): Promise<string> {
  const candidates = zoneCandidates(record);
  const base = candidates.at(-1) ?? record.zone;
  const zones = known.get(base) ?? (await zonesUnder(api, base, signal));
  const found = candidates.map((name) => zones.find((zone) => zone.name === name)).find((zone) => zone);
  if (found !== undefined) {
    known.set(base, zones);
    return found.id;
  }
  throw zoneMissing(
    title,
    record,
    'Check that the account of these credentials has a public hosted zone of that name, or set hosted_zone_id.',
  );
}

async function zonesUnder(api: JsonApi, base: string, signal: AbortSignal): Promise<readonly HostedZone[]> {
  const found: HostedZone[] = [];
  let query: Record<string, string | number> | undefined = { dnsname: `${base}.`, maxitems: 100 };
  for (let page = 0; query !== undefined && page < maxPages; page += 1) {
    const request = {
      method: 'GET',
      path: `${version}/hostedzonesbyname`,
      purpose: 'list the hosted zones',
      query,
    } as const;
    const xml = xmlOf(api, await api.send(request, signal));
    for (const zone of elementsOf(xml, 'HostedZone')) {
      const id = textOf(zone, 'Id')?.replace('/hostedzone/', '');
      if (id !== undefined && textOf(zone, 'PrivateZone') !== 'true') found.push({ id, name: nameIn(zone) });
    }
    // Zones are sorted by their reversed labels: those under this name may continue on the next page.
    const next = plainName(textOf(xml, 'NextDNSName') ?? '');
    const isMore = textOf(xml, 'IsTruncated') === 'true' && fromTheRight(next).startsWith(fromTheRight(base));
    query = isMore
      ? {
          ...{ dnsname: `${next}.`, maxitems: 100 },
          hostedzoneid: (textOf(xml, 'NextHostedZoneId') ?? '').replace('/hostedzone/', ''),
        }
      : undefined;
  }
  return found;
}

function fromTheRight(name: string): string {
  return name.split('.').reverse().join('.');
}

/** The name in an element, in lower case. Names may contain octal escapes, such as `\052` for a star. */
export function nameIn(element: string): string {
  const name = textOf(element, 'Name') ?? '';
  return plainName(name.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))));
}

/** The text of a response that `assertXml` has checked. */
export function xmlOf(api: JsonApi, answer: ApiAnswer): string {
  return api.read(z.string(), answer);
}
