/**
 * Referrals (RFC 1034 §4.3.2): the name servers that a zone's server names for a zone below its own. They stand in the
 * authority section, which node's resolver does not show.
 */
import type { World } from '../../base/world.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import { encodeRequest, opcode, parseAnswer, recordType } from './dns-message.ts';
import { plainName, readName } from './dns-name.ts';
import { type DnsServer, tcpExchange } from './tcp-exchange.ts';

/**
 * The name servers of the zone whose apex is `name`, as this server of the zone above, or of both, has them; empty where
 * that is no zone of its own. Throws DnsProviderError or RangeError where there is no answer that can be read.
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
