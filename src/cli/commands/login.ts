/** `vault login` and `vault logout`: keep the API key of a server for the commands that work on its vault. */
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { forgetLogin, storeLogin } from '../remote/login-file.ts';
import { RemoteVault, trustIn } from '../remote/remote-vault.ts';
import { serverChoice } from '../remote/server-choice.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { askPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { ServerChoice, Terminal } from '../terminal/terminal.ts';

const url = {
  type: 'string',
  valueHint: 'URL',
  positional: true,
  description: 'the URL of the vault (default: that of --server)',
} as const;

type Whoami = { readonly name: string; readonly role: string | null };

export const loginCommand = commandWithoutVault({
  name: 'login',
  description: 'Store an API key for the commands on a vault elsewhere',
  examples: [
    { does: 'Sign in to a vault, prompting for the API key', line: 'vault login https://vault.example.com' },
    {
      does: 'Do the same in a script',
      line: 'vault login https://vault.example.com --key-stdin < key.txt',
    },
  ],
  options: {
    url,
    'key-stdin': {
      type: 'boolean',
      description: 'read the API key from standard input instead of prompting',
    },
  },
  run: async (args, terminal) => {
    const choice = chosen(args.url, terminal);
    const key = await keyFor(args, terminal, choice);
    const login = { key, ...trustIn(choice) };
    const { name, role } = await new RemoteVault(terminal, choice.url, login).get<Whoami>('/whoami');
    if (role === null) {
      throw new OperatorError(`the API key ${name} has no role, so no command works with it`, {
        hint: 'Create one on the vault host with "vault api-key create --role". Nothing was stored.',
      });
    }
    const path = storeLogin(terminal, choice.url, login);
    terminal.stderr.write(
      `Signed in to ${choice.url} as ${name}, with the role ${role}. The key is in ${path}.\n`,
    );
    terminal.stderr.write(`  Try: vault --server ${choice.url} certificate list\n`);
  },
});

export const logoutCommand = commandWithoutVault({
  name: 'logout',
  description: 'Delete the stored API key of a vault elsewhere',
  examples: [{ does: 'Delete the stored key of a vault', line: 'vault logout https://vault.example.com' }],
  options: { url },
  run: async (args, terminal) => {
    const { url: server } = chosen(args.url, terminal);
    if (!forgetLogin(terminal, server)) {
      throw new OperatorError(`no API key is stored for ${server}`);
    }
    terminal.stderr.write(
      `Deleted the stored API key for ${server}. The key stays valid until it is revoked in the vault.\n`,
    );
  },
});

function chosen(given: string | undefined, { server, environment }: Terminal): ServerChoice {
  if (given !== undefined) {
    const of = serverChoice({ server: { value: given, from: 'URL' } }, environment);
    if (of !== undefined) return { ...of, ...(server && { caFile: server.caFile, pin: server.pin }) };
  }
  if (server !== undefined) return server;
  throw new Misuse('URL is missing', 'Try: vault login https://vault.example.com');
}

async function keyFor(
  args: { readonly 'key-stdin': boolean },
  terminal: Terminal,
  { url: server }: ServerChoice,
): Promise<Secret<string>> {
  if (args['key-stdin']) return secretText(await readInput('-', terminal));
  if (terminal.stdin.isTTY) return askPassword(terminal, `API key for ${server}: `);
  throw new Misuse(
    'cannot prompt for a key without a terminal',
    'Pipe the key to standard input and add --key-stdin.',
  );
}
