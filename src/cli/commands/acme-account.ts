/** `vault acme-account …`: the accounts that the vault has at CAs. */

import { localCli } from '../../domain/audit/audit.ts';
import { closeAccount, rolloverAccount } from '../../domain/issuance/acme-account-changes.ts';
import { acmeAccountView, deleteAccount, listAccounts } from '../../domain/issuance/acme-accounts.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { withVault } from '../runtime/with-vault.ts';
import { jsonText, table } from '../terminal/output.ts';

const idOption = {
  id: {
    type: 'string',
    valueHint: 'N',
    required: true,
    description: 'the id that "vault acme-account list" shows',
  },
} as const;

const list = command({
  name: 'acme-account list',
  description: 'list the accounts at CAs; the current ones are those that issuers use',
  examples: [{ does: 'See the accounts at CAs', line: 'vault acme-account list' }],
  options: { json: { type: 'boolean', description: 'print JSON, for programs' } },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const accounts = (await listAccounts(vault, {})).map(acmeAccountView);
      if (args.json) {
        terminal.stdout.write(jsonText(accounts));
        return;
      }
      if (accounts.length === 0) {
        terminal.stderr.write('There are no accounts yet; they are registered on first use.\n');
        return;
      }
      const cells = accounts.map((account) => [
        account.id,
        account.issuer,
        account.status,
        account.current ? 'yes' : 'no',
        account.email ?? '-',
        account.directory_url,
      ]);
      terminal.stdout.write(table(['ID', 'ISSUER', 'STATUS', 'CURRENT', 'CONTACT', 'DIRECTORY'], cells));
    }),
});

const rollover = command({
  name: 'acme-account rollover',
  description: 'give an account a new key',
  examples: [{ does: 'Give an account a new key', line: 'vault acme-account rollover --id 1' }],
  options: idOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await rolloverAccount(vault, localCli, args.id, stopSignal());
      terminal.stderr.write(`Account ${args.id} has a new key.\n`);
    }),
});

const deactivate = command({
  name: 'acme-account deactivate',
  description: 'close an account at its CA, for ever; issuers register another when they need one',
  examples: [{ does: 'Close an account for ever', line: 'vault acme-account deactivate --id 1' }],
  options: idOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await closeAccount(vault, localCli, args.id, stopSignal());
      terminal.stderr.write(`Account ${args.id} is closed.\n`);
    }),
});

const remove = command({
  name: 'acme-account delete',
  description: 'forget an account that is not current, with its key',
  examples: [{ does: 'Forget an account that no issuer uses', line: 'vault acme-account delete --id 1' }],
  options: idOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await deleteAccount(vault, localCli, args.id);
      terminal.stderr.write(`Account ${args.id} is deleted.\n`);
    }),
});

export const acmeAccountCommands = commandGroup('acme-account', 'see and change the accounts at CAs', {
  list,
  rollover,
  deactivate,
  delete: remove,
});
