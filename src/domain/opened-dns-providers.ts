/** The DNS providers that were opened in this process, so that what they remember (tokens, zones) serves all renewals. */
import type { DnsContext, DnsProvider } from '../dns/dns-provider.ts';

/** By id: a provider is never changed, only removed. */
export class OpenedDnsProviders {
  readonly context: DnsContext;
  readonly #opened = new Map<number, DnsProvider>();

  constructor(context: DnsContext) {
    this.context = context;
  }

  /** The provider of this id, made by `make` the first time. */
  async get(id: number, make: () => Promise<DnsProvider>): Promise<DnsProvider> {
    const known = this.#opened.get(id);
    if (known !== undefined) return known;
    const made = await make();
    this.#opened.set(id, made);
    return made;
  }
}
