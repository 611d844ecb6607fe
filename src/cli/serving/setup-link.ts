/** `vault admin setup-link`: the link by which the first administrator chooses name and password in a browser. */
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { offerSetup } from '../../domain/access/setup.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { command } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { publicUrl } from '../settings/setting-values.ts';
import { serverUrl } from './doctor-server.ts';

/** The token is in the fragment, which browsers never send. */
export function setupLink(url: string, token: Secret<string>): string {
  return `${url}/setup#token=${token.expose()}`;
}

export const setupLinkCommand = command({
  name: 'admin setup-link',
  description: 'print a link that creates the first administrator',
  examples: [
    { does: 'Print the link, and open it in a browser', line: 'vault admin setup-link' },
    {
      does: 'For a vault that is served under another address than its settings say',
      line: 'vault admin setup-link --url https://vault.example.com',
    },
  ],
  options: {
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'where the vault is served (default: by its settings)',
    },
  },
  run: async (args, terminal) => {
    const { url: given, ...flags } = args;
    const url = given === undefined ? undefined : publicUrl({ value: given, from: '--url' });
    await withVault(flags, terminal, 'refuse', async (vault, settings) => {
      const token = await offerSetup(vault, localCli);
      if (token === undefined) {
        throw new OperatorError('the vault has an administrator already', {
          hint: 'Sign in and add others there, or run: vault admin create --name NAME',
        });
      }
      terminal.stdout.write(`${setupLink(url ?? serverUrl(settings), token)}\n`);
      terminal.stderr.write('The link works once, within 24 hours, and replaces any link from before.\n');
    });
  },
});
