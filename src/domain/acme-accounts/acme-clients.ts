/** The ACME clients of this process: one per CA, so that all renewals share its nonces and directory. */
import { AcmeClient } from '../../acme/acme-client.ts';
import type { AcmeContext } from '../../acme/acme-types.ts';
import type { AcmeIssuerRow } from '../../db/tables/issuance/issuers.ts';

export class AcmeClients {
  readonly #context: AcmeContext;
  readonly #clients = new Map<string, AcmeClient>();

  constructor(context: AcmeContext) {
    this.#context = context;
  }

  /** The client of a CA; cached per directory and trust root. */
  at({ directory_url, ca_pem }: Pick<AcmeIssuerRow, 'directory_url' | 'ca_pem'>): AcmeClient {
    const key = JSON.stringify([directory_url, ca_pem]);
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const client = new AcmeClient(this.#context, { directoryUrl: directory_url, ca: ca_pem ?? undefined });
    this.#clients.set(key, client);
    return client;
  }
}
