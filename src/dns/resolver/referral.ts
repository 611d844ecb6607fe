/**
 * Referrals (RFC 1034 §4.3.2): name servers that a zone delegates a child zone to. They are in the authority section,
 * which Node's resolver does not return.
 */
import type { World } from '../../base/world.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import { encodeRequest, opcode, parseAnswer, recordType } from './dns-message.ts';
import { plainName, readName } from './dns-name.ts';
import { type DnsServer, tcpExchange } from './tcp-exchange.ts';

/**
 * The name servers of the zone with the apex `name`, according to this server of the parent zone or of both; empty if
 * it is not a separate zone. Throws DnsProviderError or RangeError if there is no readable response.
 */
export async function referredServers(
  { world, guard }: { readonly world: Pick<World, 'sleep' | 'randomBytes'>; readonly guard: OutboundGuard },
  server: DnsServer,
  name: string,
  signal: AbortSignal,
): Promise<string[]> {
  const id = world.randomBytes(2).readUInt16BE();
  const question = { name, type: recordType.ns };
  const message = await tcpExchange(
    { world, guard },
    server,
    encodeRequest({ id, opcode: opcode.query, question }),
    signal,
  );
  const { answers, authorities } = parseAnswer(message);
  return [...answers, ...authorities]
    .filter((record) => record.type === recordType.ns && record.name === plainName(name))
    .map(({ data }) => readName(message, data.byteOffset - message.byteOffset).name);
}
