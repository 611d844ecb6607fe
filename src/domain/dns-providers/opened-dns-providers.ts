/** Caches the opened DNS providers of this process, so that all renewals share their tokens and zones. */
import type { DnsProviderRow } from '../../db/tables/issuance/dns-providers.ts';
import type { DnsContext, DnsProvider } from '../../dns/dns-provider.ts';

/** An opened provider with its sealed secret, which changes with every change of the provider. */
type Opened = { readonly of: Buffer; readonly provider: DnsProvider };

/** Opened providers by id. */
export class OpenedDnsProviders {
  readonly context: DnsContext;
  readonly #opened = new Map<number, Opened>();

  constructor(context: DnsContext) {
    this.context = context;
  }

  /** The provider of this row; `make` creates it the first time and after each change. */
  async get(row: DnsProviderRow, make: () => Promise<DnsProvider>): Promise<DnsProvider> {
    const known = this.#opened.get(row.id);
    // biome-ignore lint/plugin/compared-secrets: two sealed blobs from the database.
    if (known?.of.equals(row.sealed_secret) === true) return known.provider;
    const provider = await make();
    this.#opened.set(row.id, { of: row.sealed_secret, provider });
    return provider;
  }
}
