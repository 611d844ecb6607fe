/** The DNS providers that were opened in this process, so that what they remember (tokens, zones) serves all renewals. */
import type { DnsProviderRow } from '../../db/tables/dns-providers.ts';
import type { DnsContext, DnsProvider } from '../../dns/dns-provider.ts';

/** What was opened, and of which sealed secret: whatever changes in a provider, that is sealed anew. */
type Opened = { readonly of: Buffer; readonly provider: DnsProvider };

/** By id. */
export class OpenedDnsProviders {
  readonly context: DnsContext;
  readonly #opened = new Map<number, Opened>();

  constructor(context: DnsContext) {
    this.context = context;
  }

  /** The provider of this row, made by `make` the first time, and again once it was changed. */
  async get(row: DnsProviderRow, make: () => Promise<DnsProvider>): Promise<DnsProvider> {
    const known = this.#opened.get(row.id);
    // biome-ignore lint/plugin/compared-secrets: two sealed blobs from the database.
    if (known?.of.equals(row.sealed_secret) === true) return known.provider;
    const provider = await make();
    this.#opened.set(row.id, { of: row.sealed_secret, provider });
    return provider;
  }
}
