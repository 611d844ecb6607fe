/** Provider `rfc2136`: dynamic updates (RFC 2136) at the zone's primary server, signed with a TSIG key. */
import { isIP, isIPv6 } from 'node:net';
import { z } from 'zod';
import { mapBounded } from '../../base/bounded.ts';
import { Secret } from '../../base/secret.ts';
import { type DnsContext, DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';
import {
  type DnsAnswer,
  type DnsRequest,
  encodeRequest,
  opcode,
  parseAnswer,
  type ResourceRecord,
  recordType,
} from '../resolver/dns-message.ts';
import { plainName, upwards } from '../resolver/dns-name.ts';
import { type DnsServer, tcpExchange } from '../resolver/tcp-exchange.ts';
import { additionOf, isAnswerTo, refusal, removalOf, signatureRefusal, zoneIn } from './dns-update.ts';
import { sign, type TsigKey, tsigAlgorithms, verify } from './tsig.ts';

/** Questions for the zones of many names, at the same time. */
const zonesAskedAtOnce = 10;

const wrongServer = 'must be HOST or HOST:PORT of the primary server of the zone';
const wrongSecret = 'must be the base64 text that tsig-keygen prints';

const config = z
  .strictObject({
    server: z.string().refine((text) => serverIn(text) !== undefined, wrongServer),
    key_name: z.string().min(1).optional(),
    algorithm: z.enum(tsigAlgorithms).default('hmac-sha256'),
    secret: z.string().refine(isBase64, wrongSecret).optional(),
    unsigned: z.literal(true).optional(),
    zone: z.string().min(1).optional(),
    ttl: z.int().min(0).max(86_400).default(60),
  })
  .refine(({ unsigned, key_name }) => unsigned === true || key_name !== undefined, {
    path: ['key_name'],
    message: 'is missing (to send updates without a key, set unsigned: true)',
  })
  .refine(({ key_name, secret }) => (key_name === undefined) === (secret === undefined), {
    path: ['secret'],
    message: 'and key_name must be set together',
  })
  .refine(({ unsigned, key_name }) => unsigned === undefined || key_name === undefined, {
    path: ['unsigned'],
    message: 'cannot be combined with key_name',
  });

/**
 * `server`: the primary server; `key_name`, `algorithm`, `secret`: as tsig-keygen prints them; `unsigned: true` where the
 * server goes by address alone; `zone`: where it is not to be asked for; `ttl` in seconds.
 */
export type Rfc2136Config = z.output<typeof config>;

/** Several values at a name coexist by nature: an update adds or deletes single records, as many as fit in. */
export const rfc2136: DnsProviderType<Rfc2136Config> = {
  type: 'rfc2136',
  title: 'dynamic updates with TSIG (BIND, Knot, PowerDNS …)',
  config,
  create: (settings, context) => {
    const zoneOf = async ({ name, zone }: TxtRecord, signal: AbortSignal) =>
      settings.zone ?? (await askForZone(settings, context, name, signal)) ?? zone;
    const change = async (
      records: readonly TxtRecord[],
      updateOf: (record: TxtRecord) => ResourceRecord,
      signal: AbortSignal,
    ) => {
      const placed = await mapBounded(zonesAskedAtOnce, records, async (record) => ({
        record,
        zone: await zoneOf(record, signal),
      }));
      for (const [zone, some] of Map.groupBy(placed, (one) => one.zone)) {
        const updates = some.map(({ record }) => updateOf(record));
        const question = { name: zone, type: recordType.soa };
        const answer = await converse(
          settings,
          context,
          { opcode: opcode.update, question, updates },
          signal,
        );
        if (answer.rcode === 0) continue;
        const names = [...new Set(updates.map(({ name }) => name))];
        const what = names.length === 1 ? names[0] : `${names.length} names, including ${names[0]},`;
        throw new DnsProviderError(
          `${settings.server} failed to change ${what} in the zone ${zone}: it ${refusal(answer.rcode)}`,
        );
      }
    };
    const addition = (record: TxtRecord) => additionOf(record, settings.ttl);
    return {
      present: (record, signal) => change([record], addition, signal),
      remove: (record, signal) => change([record], removalOf, signal),
      batch: {
        present: (records, signal) => change(records, addition, signal),
        remove: (records, signal) => change(records, removalOf, signal),
      },
    };
  },
};

/**
 * The zone that a name is in, as the server sees it; undefined where it does not tell. It is asked for the SOA of the
 * name, and of those above it as long as the answers are empty (a referral, or a server that leaves the SOA out).
 */
async function askForZone(
  settings: Rfc2136Config,
  context: DnsContext,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const level of upwards(name)) {
    const question = { name: level, type: recordType.soa };
    const answer = await converse(settings, context, { opcode: opcode.query, question }, signal);
    const zone = zoneIn(answer, level);
    if (zone !== undefined) return zone;
    const [noError, noSuchName] = [0, 3];
    if (answer.rcode !== noError && answer.rcode !== noSuchName) return undefined;
  }
  return undefined;
}

/** One request and its answer, whose signature is right; any header code. Throws DnsProviderError for everything else. */
async function converse(
  settings: Rfc2136Config,
  { world, guard }: DnsContext,
  request: Omit<DnsRequest, 'id'>,
  signal: AbortSignal,
): Promise<DnsAnswer> {
  const { server } = settings;
  const address = serverIn(server);
  if (address === undefined) throw new DnsProviderError(`server ${wrongServer}`);
  const id = world.randomBytes(2).readUInt16BE();
  const plain = encodeRequest({ ...request, id });
  const key = keyOf(settings);
  const signed = key && sign(plain, key, world.now());
  const bytes = await tcpExchange({ world, guard }, address, signed?.message ?? plain, signal);
  const answer = parsed(bytes, server);
  if (!isAnswerTo(answer, id, request.opcode)) {
    throw new DnsProviderError(`${server} sent an answer that does not match the request`);
  }
  if (key === undefined || signed === undefined) return answer;
  const verdict = verify(bytes, answer, key, signed.mac, world.now());
  if (verdict.kind === 'good') return answer;
  // An unsigned refusal proves nothing, but it says more than the lack of a signature.
  const isPlainRefusal = verdict.kind === 'missing' && answer.rcode !== 0;
  const why = isPlainRefusal ? refusal(answer.rcode) : signatureRefusal(verdict, world.now());
  throw new DnsProviderError(`${server} ${why}`);
}

function parsed(bytes: Buffer, server: string): DnsAnswer {
  try {
    return parseAnswer(bytes);
  } catch (cause) {
    throw new DnsProviderError(`${server} sent an answer that is not a DNS message`, { cause });
  }
}

function keyOf({ key_name: name, algorithm, secret }: Rfc2136Config): TsigKey | undefined {
  if (name === undefined || secret === undefined) return undefined;
  return { name: plainName(name), algorithm, secret: new Secret(Buffer.from(secret, 'base64')) };
}

/** HOST, HOST:PORT, [IPV6]:PORT or a bare IPv6 address; the port is 53 without one. */
export function serverIn(text: string): DnsServer | undefined {
  if (isIPv6(text)) return { host: text, port: 53 };
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s/]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3] ?? 53);
  const isHost =
    match?.[1] === undefined ? isIP(host) === 4 || /^[a-z0-9]([a-z0-9.-]*)$/i.test(host) : isIPv6(host);
  return isHost && port > 0 && port < 65_536 ? { host, port } : undefined;
}

function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}
