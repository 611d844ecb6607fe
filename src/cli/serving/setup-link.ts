/** `vault admin setup-link`: prints the link at which the first administrator sets name and password in a browser. */
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { offerSetup } from '../../domain/access/setup.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { command } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { settingsInUse } from '../settings/recorded-settings.ts';
import { publicUrl } from '../settings/setting-values.ts';
import { serverUrl } from './doctor-server.ts';

/** The setup link. The token is in the fragment, which browsers do not send to the server. */
export function setupLink(url: string, token: Secret<string>): string {
  return `${url}/setup#token=${token.expose()}`;
}

export const setupLinkCommand = command({
  name: 'admin setup-link',
  description: 'Print a link to create the first administrator',
  examples: [
    { does: 'Print the link, to open it in a browser', line: 'vault admin setup-link' },
    {
      does: 'Use a public URL that is not in the settings',
      line: 'vault admin setup-link --url https://vault.example.com',
    },
  ],
  options: {
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'the URL of the server (default: that of the running server, else from the settings)',
    },
  },
  run: async (args, terminal) => {
    const { url: given, ...flags } = args;
    const url = given === undefined ? undefined : publicUrl({ value: given, from: '--url' });
    await withVault(flags, terminal, 'refuse', async (vault, settings) => {
      const token = await offerSetup(vault, localCli);
      if (token === undefined) {
        throw new OperatorError('the vault already has an administrator', {
          hint: 'Try: vault admin create --name NAME',
        });
      }
      terminal.stdout.write(`${setupLink(url ?? serverUrl(await settingsInUse(vault, settings)), token)}\n`);
      terminal.stderr.write('The link works once, expires in 24 hours, and replaces earlier links.\n');
    });
  },
});
