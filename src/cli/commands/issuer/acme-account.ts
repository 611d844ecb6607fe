/** `vault acme-account …`: manages the accounts of the vault at ACME CAs. */

import { closeAccount, rolloverAccount } from '../../../domain/acme-accounts/acme-account-changes.ts';
import {
  type AcmeAccountView,
  acmeAccountView,
  deleteAccount,
  listAccounts,
} from '../../../domain/acme-accounts/acme-accounts.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import type { Vault } from '../../../domain/vault.ts';
import { inPath, type RemoteVault, slowRequest } from '../../remote/remote-vault.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { jsonOption, printList } from '../../terminal/table.ts';

const idOption = {
  id: {
    type: 'string',
    valueHint: 'N',
    required: true,
    positional: 'or-flag',
    description: 'the account id from "vault acme-account list"',
  },
} as const;

const list = command({
  name: 'acme-account list',
  description: 'List ACME accounts; issuers use the current ones',
  examples: [{ does: 'List the ACME accounts', line: 'vault acme-account list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const accounts = await onVault(args, terminal, 'refuse', accountsHere, accountsThere);
    printList(terminal, args, accounts, {
      none: 'No ACME accounts yet. The vault registers an account at its first order.',
      columns: [
        'ID',
        { title: 'ISSUER', holds: 'name' },
        'STATUS',
        'CURRENT',
        { title: 'CONTACT', holds: 'text' },
        { title: 'DIRECTORY', holds: 'text' },
      ],
      row: (account) => [
        account.id,
        account.issuer,
        account.status,
        account.current ? 'yes' : 'no',
        account.email ?? '-',
        account.directory_url,
      ],
    });
  },
});

const rollover = command({
  name: 'acme-account rollover',
  description: 'Replace the key of an account',
  examples: [{ does: 'Replace the key of account 1', line: 'vault acme-account rollover --id 1' }],
  options: idOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => rolloverAccount(vault, localCli, args.id, stopSignal()),
      (remote) =>
        remote.send<void>('POST', `/acme-accounts/${inPath(args.id)}/rollover`, undefined, slowRequest),
    );
    terminal.stderr.write(`Replaced the key of account ${args.id}.\n`);
  },
});

const deactivate = command({
  name: 'acme-account deactivate',
  description: 'Deactivate an account at its CA, permanently',
  examples: [
    {
      does: 'Deactivate account 1; its issuer registers a new one at the next order',
      line: 'vault acme-account deactivate --id 1',
    },
  ],
  options: idOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => closeAccount(vault, localCli, args.id, stopSignal()),
      (remote) =>
        remote.send<void>('POST', `/acme-accounts/${inPath(args.id)}/deactivate`, undefined, slowRequest),
    );
    terminal.stderr.write(`Deactivated account ${args.id}.\n`);
  },
});

const remove = command({
  name: 'acme-account delete',
  description: 'Delete an account that is not current, with its key',
  examples: [
    { does: 'Delete an account that no issuer uses', line: 'vault acme-account delete --id 1 --yes' },
  ],
  options: { ...idOption, ...yesOption },
  run: async (args, terminal) => {
    const confirm = async (accounts: readonly AcmeAccountView[]) => {
      const account = accounts.find(({ id }) => id === args.id);
      if (account === undefined || account.current) return;
      const isOpen = account.status === 'valid';
      const advice = isOpen ? ' Without the key, nothing closes the account at its CA.' : '';
      await confirmLoss(terminal, args, {
        question: `Delete account ${args.id} and its key?${advice}`,
        // The key of a closed account has no use.
        isPermanent: isOpen,
      });
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await confirm(await accountsHere(vault));
        await deleteAccount(vault, localCli, args.id);
      },
      async (remote) => {
        await confirm(await accountsThere(remote));
        await remote.send('DELETE', `/acme-accounts/${inPath(args.id)}`);
      },
    );
    terminal.stderr.write(`Deleted account ${args.id}.\n`);
  },
});

async function accountsHere(vault: Vault): Promise<AcmeAccountView[]> {
  return (await listAccounts(vault, {})).map(acmeAccountView);
}

function accountsThere(remote: RemoteVault): Promise<AcmeAccountView[]> {
  return remote.list<AcmeAccountView>('/acme-accounts');
}

export const acmeAccountCommands = commandGroup(
  'acme-account',
  'List, roll over, deactivate and delete ACME accounts',
  {
    list,
    rollover,
    deactivate,
    delete: remove,
  },
);
