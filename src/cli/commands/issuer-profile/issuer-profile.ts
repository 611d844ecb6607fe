/** `vault issuer profile …`: named sets of what certificates of a private CA have and may have. */
import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import {
  addProfile,
  changeProfile,
  type ProfileView,
  removeProfile,
  viewProfile,
  viewProfiles,
} from '../../../domain/issuers/issuer-profiles.ts';
import { createProfileInput, updateProfileInput } from '../../../domain/private-ca/profile-inputs.ts';
import { issuerPath, issuerThere } from '../../remote/issuers.ts';
import { inPath, type RemoteVault } from '../../remote/remote-vault.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { issuerOption, profileOption, settingOptions, settingsIn } from './profile-options.ts';

const add = command({
  name: 'issuer profile add',
  description: 'Add a profile to a private CA',
  examples: [
    {
      does: 'Name what the certificates of web servers have and may have',
      line: 'vault issuer profile add local-ca web --usage server --key-type ec256 --key-type rsa2048 --lifetime 30d --max-lifetime 90d --name-type dns --permit-domain internal.example',
    },
    {
      does: 'Name that of people, by email address, in one organization',
      line: 'vault issuer profile add local-ca people --usage client --name-type email --subject O=Example --max-lifetime 365d',
    },
  ],
  options: { ...profileOption, ...settingOptions, ...jsonOption },
  run: async (args, terminal) => {
    const { issuer, name } = args;
    const wanted = { name, ...settingsIn(args) };
    const input = parseInput(createProfileInput, wanted);
    const added = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await addProfile(vault, localCli, issuer, input);
        return viewProfile(vault, issuer, name);
      },
      async (remote) => remote.send<ProfileView>('POST', await profilesPath(remote, issuer), wanted),
    );
    if (args.json) terminal.stdout.write(jsonText(added));
    else {
      terminal.stderr.write(
        `Added profile ${name} to issuer ${issuer}.\n` +
          `  Try: vault certificate create --name NAME --domain DOMAIN --issuer ${issuer} --profile ${name}\n`,
      );
    }
  },
});

const update = command({
  name: 'issuer profile update',
  description: 'Change a profile; "none" clears an option',
  examples: [
    {
      does: 'Permit shorter lifetimes only, from the next issuance of each certificate',
      line: 'vault issuer profile update local-ca web --lifetime 7d --max-lifetime 30d',
    },
  ],
  options: { ...profileOption, ...settingOptions, ...jsonOption },
  run: async (args, terminal) => {
    const given = Object.entries(settingsIn(args));
    if (given.length === 0) throw new Misuse('nothing to change', 'Try: vault issuer profile update --help');
    const cleared = given.map(([key, value]) => [key, String(value) === 'none' ? null : value]);
    const wanted = Object.fromEntries(cleared);
    const changes = parseInput(updateProfileInput, wanted);
    const { issuer, name } = args;
    const changed = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await changeProfile(vault, localCli, issuer, name, changes);
        return viewProfile(vault, issuer, name);
      },
      async (remote) => remote.send<ProfileView>('PATCH', await profilePath(remote, args), wanted),
    );
    if (args.json) terminal.stdout.write(jsonText(changed));
    else {
      terminal.stderr.write(
        `Updated profile ${name} of issuer ${issuer}. Certificates that were issued stay as they are.\n`,
      );
    }
  },
});

const list = command({
  name: 'issuer profile list',
  description: 'List the profiles of a private CA',
  examples: [{ does: 'List the profiles of the built-in CA', line: 'vault issuer profile list local-ca' }],
  options: { ...issuerOption, ...jsonOption },
  run: async (args, terminal) => {
    const profiles = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => viewProfiles(vault, args.issuer),
      async (remote) => remote.list<ProfileView>(await profilesPath(remote, args.issuer)),
    );
    printList(terminal, args, profiles, {
      none: `No profiles.\n  Try: vault issuer profile add ${args.issuer} NAME`,
      columns: [
        { title: 'NAME', holds: 'name' },
        'USAGE',
        { title: 'KEY TYPES', holds: 'list' },
        'LIFETIME',
        'LONGEST',
        { title: 'NAMES', holds: 'list' },
        { title: 'PERMITS', holds: 'list' },
        { title: 'SUBJECT', holds: 'list' },
      ],
      row: (profile) => [
        ...[profile.name, profile.usage ?? 'any', listed(profile.key_types, 'any')],
        ...[profile.lifetime ?? '-', profile.max_lifetime ?? '-', listed(profile.name_types, 'all')],
        ...[listed(permitted(profile), 'any name'), listed(profile.subject, '-')],
      ],
    });
  },
});

const show = command({
  name: 'issuer profile show',
  description: 'Show a profile of a private CA',
  examples: [{ does: 'Show what a profile permits', line: 'vault issuer profile show local-ca web' }],
  options: { ...profileOption, ...jsonOption },
  run: async (args, terminal) => {
    const profile = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => viewProfile(vault, args.issuer, args.name),
      async (remote) => remote.get<ProfileView>(await profilePath(remote, args)),
    );
    const text = (list: readonly string[], otherwise: string) =>
      list.length === 0 ? otherwise : list.join(', ');
    terminal.stdout.write(
      args.json
        ? jsonText(profile)
        : facts([
            ['Issuer', profile.issuer],
            ['Profile', profile.name],
            ['Usage', profile.usage ?? 'any'],
            ['Key types', text(profile.key_types, 'any')],
            ['Lifetime', profile.lifetime ?? 'that of the CA'],
            ['Longest lifetime', profile.max_lifetime ?? 'any'],
            ['Subject', text(profile.subject, '-')],
            ['Kinds of names', text(profile.name_types, 'all')],
            ['Permits', text(permitted(profile), 'what the CA permits')],
            ['Created', profile.created_at],
          ]),
    );
  },
});

const remove = command({
  name: 'issuer profile remove',
  description: 'Remove a profile that nothing uses',
  examples: [{ does: 'Remove a profile', line: 'vault issuer profile remove local-ca web' }],
  options: profileOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => removeProfile(vault, localCli, args.issuer, args.name),
      async (remote) => remote.send<void>('DELETE', await profilePath(remote, args)),
    );
    terminal.stderr.write(`Removed profile ${args.name} of issuer ${args.issuer}.\n`);
  },
});

export const profileCommands = commandGroup(
  'profile',
  'Add, change, list and remove profiles of private CAs',
  {
    add,
    list,
    show,
    update,
    remove,
  },
);

/** The path of the profiles of an issuer, which must exist. */
async function profilesPath(remote: RemoteVault, issuer: string): Promise<string> {
  return issuerPath((await issuerThere(remote, issuer)).name, '/profiles');
}

async function profilePath(
  remote: RemoteVault,
  { issuer, name }: { readonly issuer: string; readonly name: string },
): Promise<string> {
  return `${await profilesPath(remote, issuer)}/${inPath(name)}`;
}

function permitted({ permit_domains, permit_ips }: ProfileView): readonly string[] {
  return [...permit_domains, ...permit_ips];
}

function listed(list: readonly string[], otherwise: string): string | readonly string[] {
  return list.length === 0 ? otherwise : list;
}
