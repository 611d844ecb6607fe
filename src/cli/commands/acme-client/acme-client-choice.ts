/** ACME clients of this machine's vault or of one at a server, as the commands choose them. */
import {
  type AcmeClientView,
  acmeClientIdFrom,
  allAcmeClients,
} from '../../../domain/acme-server/clients/acme-client-views.ts';
import type { Vault } from '../../../domain/vault.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { onVault } from '../../runtime/with-vault.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { labelQuery } from '../label-options.ts';

/** All clients of a vault at a server, or those with these labels, page by page. */
export function clientsThere(
  remote: RemoteVault,
  labels?: readonly string[],
): AsyncGenerator<readonly AcmeClientView[]> {
  return remote.pages<AcmeClientView>('/acme-clients', { label: labelQuery(labels) });
}

/** Works on the client that the option means, after `confirm`; returns its id. */
export function onClient(
  args: Parameters<typeof onVault>[0] & { readonly id: string },
  terminal: Terminal,
  here: (vault: Vault, id: number) => Promise<void>,
  there: (remote: RemoteVault, id: number) => Promise<void>,
  confirm?: (id: number) => Promise<void>,
): Promise<number> {
  const known = async (clients: AsyncIterable<readonly AcmeClientView[]>) => {
    const id = await acmeClientIdFrom(clients, args.id);
    await confirm?.(id);
    return id;
  };
  return onVault(
    args,
    terminal,
    'refuse',
    async (vault) => {
      const id = await known(allAcmeClients(vault));
      await here(vault, id);
      return id;
    },
    async (remote) => {
      const id = await known(clientsThere(remote));
      await there(remote, id);
      return id;
    },
  );
}
