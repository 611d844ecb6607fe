/**
 * `vault login` and `vault logout`: keep the API key or the session of a server for the commands that work on its
 * vault.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { printable } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { isBearerSession } from '../../crypto/secrets/session-token.ts';
import { forgetLogin, storeLogin } from '../remote/login-file.ts';
import { RemoteVault, trustIn } from '../remote/remote-vault.ts';
import { serverChoice } from '../remote/server-choice.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { askPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { ServerChoice, Terminal } from '../terminal/terminal.ts';
import { deviceLogin } from './device-login.ts';

const url = {
  type: 'string',
  valueHint: 'URL',
  positional: true,
  description: 'the URL of the vault (default: that of --server)',
} as const;

type Whoami = { readonly name: string; readonly role: string | null };

export const loginCommand = commandWithoutVault({
  name: 'login',
  description: 'Sign in for the commands on a vault elsewhere',
  examples: [
    { does: 'Sign in to a vault, prompting for the API key', line: 'vault login https://vault.example.com' },
    {
      does: 'Do the same in a script',
      line: 'vault login https://vault.example.com --key-stdin < key.txt',
    },
    {
      does: 'Sign in at the OpenID Connect provider of the vault',
      line: 'vault login https://vault.example.com --oidc',
    },
  ],
  options: {
    url,
    'key-stdin': {
      type: 'boolean',
      description: 'read the API key from standard input instead of prompting',
    },
    oidc: {
      type: 'boolean',
      description:
        'sign in at the OpenID Connect provider of the vault, in any browser, instead of with a key',
    },
  },
  run: async (args, terminal) => {
    const choice = chosen(args.url, terminal);
    if (args.oidc) {
      if (args['key-stdin'])
        throw new Misuse('--oidc and --key-stdin exclude each other', 'Use one of them.');
      return signIn(terminal, choice);
    }
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
  description: 'Sign out of a vault elsewhere, or delete its stored API key',
  examples: [{ does: 'Sign out of a vault', line: 'vault logout https://vault.example.com' }],
  options: { url },
  run: async (args, terminal) => {
    const choice = chosen(args.url, terminal);
    const { url: server } = choice;
    const login = forgetLogin(terminal, server);
    if (login === undefined) throw new OperatorError(`no API key or session is stored for ${server}`);
    if (isBearerSession(login.key.expose())) {
      await endSession(new RemoteVault(terminal, server, { ...login, ...trustIn(choice) }), server);
      terminal.stderr.write(`Signed out of ${server}.\n`);
      return;
    }
    terminal.stderr.write(
      `Deleted the stored API key for ${server}. The key stays valid until it is revoked in the vault.\n`,
    );
  },
});

/** Signs in at the provider of the vault, and stores the session. */
async function signIn(terminal: Terminal, choice: ServerChoice): Promise<void> {
  const trust = trustIn(choice);
  const remote = new RemoteVault(terminal, choice.url, { ...trust });
  const { token: key, name, role, expiresAt } = await deviceLogin(terminal, remote);
  const path = storeLogin(terminal, choice.url, { key, ...trust });
  terminal.stderr.write(
    printable(
      `Signed in to ${choice.url} as ${name}, with the role ${role}, until ${expiresAt}. The session is in ${path}.`,
    ),
  );
  terminal.stderr.write(`\n  Try: vault --server ${choice.url} certificate list\n`);
}

/** Ends a session whose token this machine has deleted. Throws OperatorError if that is not certain. */
async function endSession(remote: RemoteVault, server: string): Promise<void> {
  try {
    await remote.send('DELETE', '/session');
  } catch (error) {
    // It has ended before.
    if (error instanceof Problem && error.code === 'unauthenticated') return;
    const why = error instanceof Error ? error.message : String(error);
    throw new OperatorError(
      `deleted the session from this machine, but could not sign out of ${server}: ${why}`,
      {
        hint: 'The session expires after 30 minutes without a request, if the vault has no other setting.',
        cause: error,
      },
    );
  }
}

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
