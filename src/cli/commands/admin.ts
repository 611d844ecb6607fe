/** `vault admin …`: manages administrators without signing in; shell access to the data directory is enough. */
import { roles } from '../../base/role.ts';
import { updateAdministratorInput } from '../../domain/access/administrator-inputs.ts';
import {
  type AdministratorView,
  changeRights,
  createAdministrator,
  deleteAdministrator,
  viewAdministrators,
} from '../../domain/access/administrators.ts';
import { Passwords } from '../../domain/access/passwords.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { parseInput } from '../../domain/inputs.ts';
import { inPath } from '../remote/remote-vault.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { onVault } from '../runtime/with-vault.ts';
import { setupLinkCommand } from '../serving/setup-link.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import { credentials, nameOption, passwordOptions, resetCommand } from './admin-password.ts';
import { labelsFrom } from './label-options.ts';

const roleOption = {
  type: 'string',
  valueHint: 'ROLE',
  values: roles,
  description: 'viewer reads all but private keys, operator also manages certificates, admin does everything',
} as const;

const reachOption = {
  type: 'string',
  valueHint: 'KEY=VALUE',
  multiple: true,
  description: 'a label that confines what a viewer or operator sees and changes (default: everything)',
} as const;

const profileOption = {
  type: 'string',
  valueHint: 'ISSUER/PROFILE',
  multiple: true,
  description: 'a profile of a private CA; an operator has certificates issued with no others (default: any)',
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
    {
      does: 'Create an administrator who manages the certificates with one label',
      line: 'vault admin create --name bob --role operator --reach team=web --password-stdin < password.txt',
    },
    {
      does: 'Create an administrator who has certificates issued with one profile only',
      line: 'vault admin create --name eve --role operator --profile local-ca/web --password-stdin < password.txt',
    },
  ],
  options: {
    ...passwordOptions,
    role: { ...roleOption, description: `${roleOption.description} (default: admin)` },
    reach: reachOption,
    profile: profileOption,
  },
  run: async (args, terminal) => {
    const {
      role = 'admin',
      reach = [],
      profiles = [],
    } = parseInput(updateAdministratorInput, {
      role: args.role ?? 'admin',
      reach: args.reach,
      profiles: args.profile,
    });
    const input = await credentials(args, terminal, `Password for ${args.name}: `);
    const { name: made } = await onVault(
      args,
      terminal,
      'create',
      (vault) =>
        createAdministrator(vault, new Passwords(terminal.world), localCli, {
          ...input,
          ...{ role, reach, profiles },
        }),
      (remote) =>
        remote.send<AdministratorView>('POST', '/administrators', {
          ...{ name: input.name, role, reach, profiles },
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
    const hasReach = people.some(({ reach }) => reach.length > 0);
    const hasProfiles = people.some(({ profiles }) => profiles.length > 0);
    printList(terminal, args, people, {
      none: 'No administrators yet.\n  Try: vault admin create --name NAME',
      columns: [
        { title: 'NAME', holds: 'name' },
        'ROLE',
        ...(hasReach ? [{ title: 'REACH', holds: 'list' } as const] : []),
        ...(hasProfiles ? [{ title: 'PROFILES', holds: 'list' } as const] : []),
        'SIGN-IN',
        { title: 'CREATED', holds: 'time' },
        { title: 'LAST SIGNED IN', holds: 'time' },
      ],
      row: ({ name, role, reach, profiles, sign_in, created_at, last_signed_in_at }) => [
        ...[name, role],
        ...(hasReach ? [reach.length === 0 ? 'everything' : reach] : []),
        ...(hasProfiles ? [profiles.length === 0 ? 'any' : profiles] : []),
        ...[sign_in, created_at],
        last_signed_in_at ?? 'never',
      ],
    });
  },
});

const update = command({
  name: 'admin update',
  description: 'Change the role, reach or profiles of an administrator',
  examples: [
    {
      does: 'Let someone read everything but private keys, and change nothing',
      line: 'vault admin update --name alice --role viewer',
    },
    {
      does: 'Let someone see and change only what has a label',
      line: 'vault admin update --name alice --reach team=web',
    },
    {
      does: 'Let an operator have certificates issued with one profile only',
      line: 'vault admin update --name eve --profile local-ca/people',
    },
  ],
  options: {
    name: nameOption,
    role: roleOption,
    reach: {
      ...reachOption,
      description: `${reachOption.description.replace(' (default: everything)', '')}, or none; replaces the current ones`,
    },
    profile: {
      ...profileOption,
      description:
        'a profile of a private CA for what an operator has issued, or none for any; replaces the current ones',
    },
  },
  run: async (args, terminal) => {
    if (args.role === undefined && args.reach.length === 0 && args.profile.length === 0) {
      throw new Misuse('nothing to change', 'Try: vault admin update --help');
    }
    const change = parseInput(updateAdministratorInput, {
      role: args.role,
      reach: labelsFrom(args.reach),
      profiles: labelsFrom(args.profile),
    });
    const changed = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => changeRights(vault, localCli, { name: args.name, ...change, theLast: 'goes' }),
      (remote) => remote.send<AdministratorView>('PATCH', `/administrators/${inPath(args.name)}`, change),
    );
    const { name, role, reach, profiles } = changed;
    const rights = [
      `the role ${role}`,
      ...(reach.length > 0 ? [`the reach ${reach.join(', ')}`] : []),
      ...(profiles.length > 0 ? [`the profiles ${profiles.join(', ')}`] : []),
    ];
    terminal.stderr.write(`Administrator ${name} has ${rights.join(' and ')}.\n`);
  },
});

const remove = command({
  name: 'admin delete',
  description: 'Delete an administrator and end their sessions',
  examples: [{ does: 'Delete an administrator', line: 'vault admin delete --name alice' }],
  options: { name: nameOption },
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
    'reset-password': resetCommand,
    delete: remove,
  },
);
