/** Questions over the network: node's resolver (c-ares), with limits that suit somebody who asks again anyway. */
import { Resolver } from 'node:dns/promises';
import { type OutboundGuard, OutboundRefusal, outboundGuard } from '../net/outbound-guard.ts';
import { DnsProviderError } from './dns-provider.ts';
import type { DnsResolver } from './dns-resolver.ts';

/** How long one server may take to answer, and how often it is asked. A silent one costs the product of both. */
export type Patience = { readonly timeoutMs: number; readonly tries: number };

const usual: Patience = { timeoutMs: 2000, tries: 3 };

/**
 * Asks `configured` (`ip:port`), or else what the system is set to. Nothing is kept between two questions: a change of the
 * system's settings counts at once. Both are this machine's settings; the guard is asked about servers that zones name.
 * Throws DnsProviderError where there is no answer, or one that is an error.
 */
export function systemResolver(
  configured: string | undefined,
  patience: Patience = usual,
  guard: OutboundGuard = outboundGuard(),
): DnsResolver {
  const ask = async <T>(
    what: string,
    question: (resolver: Resolver) => Promise<T[]>,
    server = configured,
  ): Promise<T[]> => {
    const resolver = new Resolver({
      timeout: patience.timeoutMs,
      maxTimeout: patience.timeoutMs,
      tries: patience.tries,
    });
    try {
      if (server !== undefined && server !== configured) refuse(guard, server);
      if (server !== undefined) resolver.setServers([server]);
      return await question(resolver);
    } catch (error) {
      if (error instanceof OutboundRefusal) throw new DnsProviderError(error.message, { cause: error });
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
      const whom = server ?? "the system's resolver";
      throw new DnsProviderError(`${whom} ${reasons[code] ?? `failed (${code})`} when asked for ${what}`, {
        cause: error,
      });
    }
  };
  const cname = async (name: string) => {
    const [target] = await ask(`the CNAME of ${name}`, (resolver) => resolver.resolveCname(name));
    return target;
  };
  return {
    configured,
    cname,
    txt: async (name, server) => {
      const records = await ask(`the TXT of ${name}`, (resolver) => resolver.resolveTxt(name), server);
      return records.map((strings) => strings.join(''));
    },
    nameServers: async (name) => {
      const names = await ask(`the NS of ${name}`, (resolver) => resolver.resolveNs(name));
      // The name servers of an alias are those of its target, which may be in somebody else's zone.
      return names.length > 0 && (await cname(name)) !== undefined ? [] : names;
    },
    addresses: async (name) => {
      const both = await Promise.allSettled([
        ask(`the A of ${name}`, (resolver) => resolver.resolve4(name)),
        ask(`the AAAA of ${name}`, (resolver) => resolver.resolve6(name)),
      ]);
      const found = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      const failed = both.find((one) => one.status === 'rejected');
      if (found.length === 0 && failed !== undefined) throw failed.reason;
      return found;
    },
  };
}

/** Throws OutboundRefusal for an `ip:port` that may not be asked. */
function refuse(guard: OutboundGuard, server: string): void {
  const [, six, four = '', port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(server) ?? [];
  guard.target(six ?? four, Number(port));
}

/** c-ares' words for people, by error code. */
const reasons: Readonly<Record<string, string>> = {
  ETIMEOUT: 'did not answer',
  ECONNREFUSED: 'cannot be reached',
  ESERVFAIL: 'answered SERVFAIL',
  EREFUSED: 'answered REFUSED',
  EFORMERR: 'answered FORMERR',
  ENOTIMP: 'answered NOTIMP',
  EBADRESP: 'answered with garbage',
  EBADNAME: 'takes it for no name',
};
