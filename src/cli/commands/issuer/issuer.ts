/** `vault issuer …`: manages the CAs that issue certificates. */
import { AcmeError } from '../../../acme/acme-error.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createIssuerInput, parseInput, updateIssuerInput } from '../../../domain/inputs.ts';
import { directoryHint } from '../../../domain/issuers/directory-hint.ts';
import { addIssuer, removeIssuer, updateIssuer } from '../../../domain/issuers/issuer-changes.ts';
import { type IssuerView, viewIssuers } from '../../../domain/issuers/issuer-views.ts';
import { type IssuerSecrets, knownDirectories } from '../../../domain/issuers/issuers.ts';
import { localCaName } from '../../../domain/private-ca/local-ca.ts';
import {
  addIssuerThere,
  issuerPath,
  issuersThere,
  issuerThere,
  updateIssuerThere,
} from '../../remote/issuers.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { profileCommands } from '../issuer-profile/issuer-profile.ts';
import { secretsFrom } from './issuer-files.ts';
import { caOptions, nameOption } from './issuer-options.ts';
import {
  addPrivate,
  changesPrivate,
  forceOption,
  isPrivateType,
  lostWith,
  newPrivateCaOptions,
  permittedNames,
  privateCaOptions,
  refuseOptionsBut,
  typeOption,
  updatePrivate,
} from './private-ca-commands.ts';

type CaArguments = Arguments<typeof caOptions>;

const add = command({
  name: 'issuer add',
  description: 'Add an ACME CA, or a private CA with its own root',
  examples: [
    {
      does: "Add Let's Encrypt, whose directory URL is built in",
      line: 'vault issuer add --name letsencrypt --email ops@example.com --accept-terms',
    },
    {
      does: 'Add a CA that requires external account binding',
      line: 'vault issuer add --name zerossl --directory https://acme.zerossl.com/v2/DV90 --eab-kid ID --eab-hmac-key-file hmac.key --accept-terms',
    },
    {
      does: 'Add a private CA that issues only for names below staging.example',
      line: 'vault issuer add --name staging-ca --type local-ca --permit-domain staging.example --lifetime 30d',
    },
    {
      does: 'Add your own ACME CA',
      line: 'vault issuer add --name inside --directory https://ca.example.internal/acme/acme/directory --ca-file root.pem',
    },
  ],
  options: { ...nameOption, ...typeOption, ...caOptions, ...privateCaOptions, ...newPrivateCaOptions },
  run: async (args, terminal) => {
    if (isPrivateType(args.type)) return addPrivate(args, terminal);
    refuseOptionsBut('acme', args);
    const directory = args.directory ?? knownDirectories[args.name];
    if (directory === undefined) {
      throw new Misuse(
        '--directory is missing',
        `Only the names ${Object.keys(knownDirectories).join(' and ')} have a built-in directory URL.`,
      );
    }
    const wanted = { name: args.name, directory_url: directory, ...given(args) };
    const input = parseInput(createIssuerInput, wanted);
    const secrets = await secretsFrom(args, terminal);
    await onVault(
      args,
      terminal,
      'create',
      (vault) => {
        const adding = () => addIssuer(vault, localCli, input, secrets, stopSignal());
        return withDirectoryHint(adding, secrets.ca !== undefined);
      },
      (remote) => addIssuerThere(remote, wanted, secrets),
    );
    terminal.stderr.write(
      `Added issuer ${input.name}. The first certificate registers its account.\n` +
        `  Try: vault certificate create --name NAME --domain DOMAIN --issuer ${input.name}\n`,
    );
  },
});

const update = command({
  name: 'issuer update',
  description: 'Change an issuer; "none" clears an option',
  examples: [
    {
      does: 'Change the contact address',
      line: 'vault issuer update --name letsencrypt --email hostmaster@example.com',
    },
    { does: 'Trust the public CAs again', line: 'vault issuer update --name inside --ca-file none' },
    {
      does: 'Confine a private CA to fewer names',
      line: 'vault issuer update --name staging-ca --permit-domain eu.staging.example',
    },
  ],
  options: { ...nameOption, ...caOptions, ...privateCaOptions, ...forceOption },
  run: async (args, terminal) => {
    if (changesPrivate(args)) return updatePrivate(args, terminal);
    const named = Object.entries(given(args)).map(([key, value]) => [key, value === 'none' ? null : value]);
    const wanted = {
      ...Object.fromEntries(named),
      ...(args.directory !== undefined && { directory_url: args.directory }),
    };
    const changes = parseInput(updateIssuerInput, wanted);
    const { 'ca-file': caFile, ...others } = args;
    const secrets: IssuerSecrets =
      caFile === 'none'
        ? { ...(await secretsFrom({ ...others, 'ca-file': undefined }, terminal)), ca: null }
        : await secretsFrom(args, terminal);
    const { eabKey, ca, acceptsTerms } = secrets;
    if (Object.keys(changes).length === 0 && eabKey === undefined && ca === undefined && !acceptsTerms) {
      throw new Misuse('nothing to change', 'Try: vault issuer update --help');
    }
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => {
        const changing = () => updateIssuer(vault, localCli, args.name, changes, secrets, stopSignal());
        return withDirectoryHint(changing, typeof ca === 'string');
      },
      (remote) => updateIssuerThere(remote, args.name, wanted, secrets),
    );
    terminal.stderr.write(`Updated issuer ${args.name}.\n`);
  },
});

const list = command({
  name: 'issuer list',
  description: 'List issuers',
  examples: [{ does: 'List all issuers', line: 'vault issuer list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const views = await onVault(args, terminal, 'refuse', viewIssuers, issuersThere);
    const issuers = views.map((issuer) => ({
      name: issuer.name,
      type: issuer.type,
      directory_url: issuer.directory_url,
      email: issuer.email,
      profile: issuer.profile,
      preferred_chain: issuer.preferred_chain,
      account: issuer.account,
      paused_until: issuer.paused_until,
      private_ca: issuer.private_ca,
      created_at: issuer.created_at,
    }));
    printList(terminal, args, issuers, {
      none: 'No issuers.',
      columns: [
        { title: 'NAME', holds: 'name' },
        'TYPE',
        { title: 'DIRECTORY', holds: 'text' },
        { title: 'PERMITS', holds: 'text' },
        { title: 'CONTACT', holds: 'text' },
        'ACCOUNT',
        { title: 'PAUSED UNTIL', holds: 'time' },
      ],
      row: (issuer) => [
        issuer.name,
        issuer.type,
        issuer.directory_url ?? '-',
        permittedNames(issuer.private_ca),
        issuer.email ?? '-',
        issuer.account ?? '-',
        issuer.paused_until ?? '-',
      ],
    });
  },
});

const remove = command({
  name: 'issuer remove',
  description: 'Remove an issuer: accounts at an ACME CA stay, the keys of a private CA do not',
  examples: [
    { does: 'Remove an issuer that no certificate uses', line: 'vault issuer remove --name inside' },
  ],
  options: { ...nameOption, ...yesOption },
  run: async (args, terminal) => {
    const confirm = async (issuer: IssuerView | undefined) => {
      // The built-in CA is never removed.
      if (issuer === undefined || issuer.name === localCaName) return;
      await confirmLoss(terminal, args, {
        question: `Remove issuer ${issuer.name}${lostWith(issuer)}?`,
        // Everything else is configuration that "issuer add" takes again.
        isPermanent: lostWith(issuer) !== '',
      });
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await confirm((await viewIssuers(vault)).find(({ name }) => name === args.name));
        await removeIssuer(vault, localCli, args.name);
      },
      async (remote) => {
        await confirm(await issuerThere(remote, args.name));
        await remote.send('DELETE', issuerPath(args.name));
      },
    );
    terminal.stderr.write(`Removed issuer ${args.name}.\n`);
  },
});

export const issuerCommands = commandGroup('issuer', 'Add, change, list and remove issuers (CAs)', {
  add,
  list,
  update,
  remove,
  profile: profileCommands,
});

function given(args: CaArguments) {
  return {
    ...(args.email !== undefined && { email: args.email }),
    ...(args['eab-kid'] !== undefined && { eab_kid: args['eab-kid'] }),
    ...(args.profile !== undefined && { profile: args.profile }),
    ...(args['preferred-chain'] !== undefined && { preferred_chain: args['preferred-chain'] }),
  };
}

/** Runs `work`; rethrows an AcmeError with a hint that names the option to check. */
async function withDirectoryHint(work: () => Promise<void>, hasCaFile: boolean): Promise<void> {
  try {
    await work();
  } catch (error) {
    const hint = error instanceof AcmeError ? directoryHint(error, hasCaFile) : undefined;
    if (!(error instanceof AcmeError) || hint === undefined) throw error;
    throw new OperatorError(error.message, { hint, cause: error });
  }
}
