/** `vault admin …`: manages administrators without signing in; shell access to the data directory is enough. */
import { roles } from '../../base/role.ts';
import type { Secret } from '../../base/secret.ts';
import {
  type AdministratorView,
  changeRole,
  createAdministrator,
  createAdministratorInput,
  deleteAdministrator,
  resetPassword,
  updateAdministratorInput,
  viewAdministrators,
} from '../../domain/access/administrators.ts';
import { Passwords } from '../../domain/access/passwords.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import { inPath } from '../remote/remote-vault.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { onVault, withVault } from '../runtime/with-vault.ts';
import { setupLinkCommand } from '../serving/setup-link.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { askNewPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import type { Terminal } from '../terminal/terminal.ts';

const name = {
  type: 'string',
  valueHint: 'NAME',
  required: true,
  positional: 'or-flag',
  description: 'the name to sign in with',
} as const;

const passwordOptions = {
  name,
  'password-stdin': {
    type: 'boolean',
    description: 'read the password from standard input instead of prompting for it',
  },
} as const;

const roleOption = {
  type: 'string',
  valueHint: 'ROLE',
  values: roles,
  description: 'viewer reads all but private keys, operator also manages certificates, admin does everything',
} as const;

const create = command({
  name: 'admin create',
  description: 'Create an administrator, who can sign in to the console',
  examples: [
    { does: 'Create an administrator, prompting for the password', line: 'vault admin create --name alice' },
    {
      does: 'Do the same in a script',
      line: 'vault admin create --name alice --password-stdin < password.txt',
    },
  ],
  options: {
    ...passwordOptions,
    role: { ...roleOption, description: `${roleOption.description} (default: admin)` },
  },
  run: async (args, terminal) => {
    const { role } = parseInput(updateAdministratorInput, { role: args.role ?? 'admin' });
    const input = await credentials(args, terminal, `Password for ${args.name}: `);
    const { name: made } = await onVault(
      args,
      terminal,
      'create',
      (vault) => createAdministrator(vault, new Passwords(terminal.world), localCli, { ...input, role }),
      (remote) =>
        remote.send<AdministratorView>('POST', '/administrators', {
          ...{ name: input.name, role },
          password: input.password.expose(),
        }),
    );
    terminal.stderr.write(`Created administrator ${made}.\n`);
  },
});

const list = command({
  name: 'admin list',
  description: 'List administrators',
  examples: [{ does: 'List everyone who can sign in', line: 'vault admin list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const people = await onVault(args, terminal, 'refuse', viewAdministrators, (remote) =>
      remote.get<AdministratorView[]>('/administrators'),
    );
    printList(terminal, args, people, {
      none: 'No administrators yet.\n  Try: vault admin create --name NAME',
      columns: [
        { title: 'NAME', holds: 'name' },
        'ROLE',
        'SIGN-IN',
        { title: 'CREATED', holds: 'time' },
        { title: 'LAST SIGNED IN', holds: 'time' },
      ],
      row: ({ name, role, sign_in, created_at, last_signed_in_at }) => [
        ...[name, role, sign_in, created_at],
        last_signed_in_at ?? 'never',
      ],
    });
  },
});

const update = command({
  name: 'admin update',
  description: 'Give an administrator another role, which counts immediately',
  examples: [
    {
      does: 'Let someone read everything but private keys, and change nothing',
      line: 'vault admin update --name alice --role viewer',
    },
  ],
  options: { name, role: { ...roleOption, required: true } },
  run: async (args, terminal) => {
    const { role } = parseInput(updateAdministratorInput, { role: args.role });
    const { name: changed } = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => changeRole(vault, localCli, { name: args.name, role, theLast: 'goes' }),
      (remote) => remote.send<AdministratorView>('PATCH', `/administrators/${inPath(args.name)}`, { role }),
    );
    terminal.stderr.write(`Administrator ${changed} has the role ${role}.\n`);
  },
});

const reset = command({
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

const remove = command({
  name: 'admin delete',
  description: 'Delete an administrator and end their sessions',
  examples: [{ does: 'Delete an administrator', line: 'vault admin delete --name alice' }],
  options: { name },
  run: async (args, terminal) => {
    const { wasLast } = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => deleteAdministrator(vault, localCli, args.name, 'goes'),
      async (remote) => {
        await remote.send('DELETE', `/administrators/${inPath(args.name)}`);
        // Over HTTP, the last one stays.
        return { wasLast: false };
      },
    );
    terminal.stderr.write(`Deleted administrator ${args.name}.\n`);
    if (wasLast) {
      terminal.stderr.write(
        'No administrators are left, so no one can sign in.\n  Fix: vault admin create --name NAME\n',
      );
    }
  },
});

export const adminCommands = commandGroup(
  'admin',
  'Create, change, list and delete administrators of the console',
  {
    create,
    'setup-link': setupLinkCommand,
    list,
    update,
    'reset-password': reset,
    delete: remove,
  },
);

function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** Name and password, validated before the vault is opened. */
async function credentials(
  args: { readonly name: string; readonly 'password-stdin': boolean },
  terminal: Terminal,
  question: string,
): Promise<{ readonly name: string; readonly password: Secret<string> }> {
  parseInput(createAdministratorInput.pick({ name: true }), { name: args.name });
  const password = args['password-stdin']
    ? secretText(await readInput('-', terminal))
    : await promptForPassword(terminal, question);
  return parseInput(createAdministratorInput.omit({ role: true }), {
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
