/** `vault admin …`: administrators, also when nobody can sign in; whoever has a shell here needs no password. */
import type { Secret } from '../../base/secret.ts';
import {
  createAdministrator,
  createAdministratorInput,
  deleteAdministrator,
  resetPassword,
  viewAdministrators,
} from '../../domain/access/administrators.ts';
import { Passwords } from '../../domain/access/passwords.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { setupLinkCommand } from '../serving/setup-link.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonText, table } from '../terminal/output.ts';
import { askNewPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

const name = {
  type: 'string',
  valueHint: 'NAME',
  required: true,
  description: 'the name to sign in with',
} as const;

const passwordOptions = {
  name,
  'password-stdin': {
    type: 'boolean',
    description: 'read the password from standard input instead of asking for it',
  },
} as const;

const create = command({
  name: 'admin create',
  description: 'make an administrator, who can sign in to the console',
  examples: [
    { does: 'Let somebody sign in; the password is asked for', line: 'vault admin create --name alice' },
    { does: 'The same in a script', line: 'vault admin create --name alice --password-stdin < password.txt' },
  ],
  options: passwordOptions,
  run: async (args, terminal) => {
    const input = await credentials(args, terminal, `Password for ${args.name}: `);
    await withVault(args, terminal, 'create', async (vault) => {
      await createAdministrator(vault, new Passwords(terminal.world), localCli, input);
      terminal.stderr.write(`Administrator ${input.name} can sign in now.\n`);
    });
  },
});

const list = command({
  name: 'admin list',
  description: 'list the administrators',
  examples: [{ does: 'See who can sign in', line: 'vault admin list' }],
  options: { json: { type: 'boolean', description: 'print JSON, for programs' } },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const people = await viewAdministrators(vault);
      if (args.json) terminal.stdout.write(jsonText(people));
      else if (people.length === 0) {
        terminal.stderr.write('There is no administrator yet; "vault admin create --name NAME" makes one.\n');
      } else {
        const cells = people.map((person) => [
          person.name,
          person.created_at,
          person.last_signed_in_at ?? 'never',
        ]);
        terminal.stdout.write(table(['NAME', 'CREATED', 'LAST SIGNED IN'], cells));
      }
    }),
});

const reset = command({
  name: 'admin reset-password',
  description: 'give an administrator a new password, and end their sessions',
  examples: [
    {
      does: 'Give somebody a new password, and end their sessions',
      line: 'vault admin reset-password --name alice',
    },
  ],
  options: passwordOptions,
  run: async (args, terminal) => {
    const input = await credentials(args, terminal, `New password for ${args.name}: `);
    await withVault(args, terminal, 'refuse', async (vault) => {
      const ended = await resetPassword(vault, new Passwords(terminal.world), localCli, input);
      const sessions = ended === 1 ? '1 session has' : `${ended} sessions have`;
      terminal.stderr.write(`${input.name} has a new password; ${sessions} ended.\n`);
    });
  },
});

const remove = command({
  name: 'admin delete',
  description: 'remove an administrator, and end their sessions',
  examples: [{ does: 'Let somebody sign in no more', line: 'vault admin delete --name alice' }],
  options: { name },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const { wasLast } = await deleteAdministrator(vault, localCli, args.name, 'goes');
      terminal.stderr.write(`Administrator ${args.name} is removed.\n`);
      if (wasLast) {
        terminal.stderr.write(
          'That was the last one: nobody can sign in now. "vault admin create --name NAME" makes another.\n',
        );
      }
    }),
});

export const adminCommands = commandGroup('admin', 'the people who can sign in to the console', {
  create,
  'setup-link': setupLinkCommand,
  list,
  'reset-password': reset,
  delete: remove,
});

/** Name and password, checked for their form before anything is opened. */
async function credentials(
  args: { readonly name: string; readonly 'password-stdin': boolean },
  terminal: Terminal,
  question: string,
): Promise<{ readonly name: string; readonly password: Secret<string> }> {
  parseInput(createAdministratorInput.pick({ name: true }), { name: args.name });
  const password = args['password-stdin']
    ? secretText(await readInput('-', terminal))
    : await asked(terminal, question);
  return parseInput(createAdministratorInput, { name: args.name, password: password.expose() });
}

async function asked(terminal: Terminal, question: string): Promise<Secret<string>> {
  if (terminal.stdin.isTTY) return askNewPassword(terminal, question);
  throw new Misuse(
    'there is no terminal to ask for the password on',
    'Send it on standard input with --password-stdin.',
  );
}
