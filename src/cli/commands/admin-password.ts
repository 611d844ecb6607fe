/** Passwords of administrators on the command line: typed, piped, and reset. */
import type { Secret } from '../../base/secret.ts';
import { createAdministratorInput } from '../../domain/access/administrator-inputs.ts';
import { resetPassword } from '../../domain/access/administrators.ts';
import { Passwords } from '../../domain/access/passwords.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import { command } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { askNewPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const nameOption = {
  type: 'string',
  valueHint: 'NAME',
  required: true,
  positional: 'or-flag',
  description: 'the name to sign in with',
} as const;

export const passwordOptions = {
  name: nameOption,
  'password-stdin': {
    type: 'boolean',
    description: 'read the password from standard input instead of prompting for it',
  },
} as const;

export const resetCommand = command({
  name: 'admin reset-password',
  description: "Set an administrator's password, remove their second factors and sign them out",
  examples: [
    {
      does: 'Set a new password and end all sessions of this administrator',
      line: 'vault admin reset-password --name alice',
    },
  ],
  options: passwordOptions,
  run: async (args, terminal) => {
    const input = await credentials(args, terminal, `New password for ${args.name}: `);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const reset = await resetPassword(vault, new Passwords(terminal.world), localCli, input);
      const sessions = counted(reset.sessions, 'session');
      terminal.stderr.write(`Changed the password of ${input.name}; ended ${sessions}.\n`);
      const { passkeys, authenticator_apps, recovery_codes } = reset;
      if (passkeys + authenticator_apps === 0) return;
      const removed = [
        counted(passkeys, 'passkey'),
        counted(authenticator_apps, 'authenticator app'),
        counted(recovery_codes, 'recovery code'),
      ];
      terminal.stderr.write(
        `Removed their second factors: ${removed.join(', ')}. The audit log records this.\n`,
      );
    });
  },
});

function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** Name and password, validated before the vault is opened. */
export async function credentials(
  args: { readonly name: string; readonly 'password-stdin': boolean },
  terminal: Terminal,
  question: string,
): Promise<{ readonly name: string; readonly password: Secret<string> }> {
  parseInput(createAdministratorInput.pick({ name: true }), { name: args.name });
  const password = args['password-stdin']
    ? secretText(await readInput('-', terminal))
    : await promptForPassword(terminal, question);
  return parseInput(createAdministratorInput.omit({ role: true, reach: true, profiles: true }), {
    name: args.name,
    password: password.expose(),
  });
}

async function promptForPassword(terminal: Terminal, question: string): Promise<Secret<string>> {
  if (terminal.stdin.isTTY) return askNewPassword(terminal, question);
  throw new Misuse(
    'cannot prompt for a password without a terminal',
    'Pipe the password to standard input and add --password-stdin.',
  );
}
