/** `vault issuer …`: manages the CAs that issue certificates. */
import { AcmeError } from '../../../acme/acme-error.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createIssuerInput, parseInput, updateIssuerInput } from '../../../domain/inputs.ts';
import { addIssuer, removeIssuer, updateIssuer } from '../../../domain/issuers/issuer-changes.ts';
import { viewIssuers } from '../../../domain/issuers/issuer-views.ts';
import { type IssuerSecrets, knownDirectories } from '../../../domain/issuers/issuers.ts';
import { localCaName } from '../../../domain/private-ca/local-ca.ts';
import { OutboundError } from '../../../net/outbound-http.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { profileCommands } from '../issuer-profile/issuer-profile.ts';
import { readEabKey, readTrust } from './issuer-files.ts';
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
    const input = parseInput(createIssuerInput, {
      name: args.name,
      directory_url: directory,
      ...given(args),
    });
    const secrets = await secretsFrom(args, terminal);
    await withVault(args, terminal, 'create', async (vault) => {
      const adding = () => addIssuer(vault, localCli, input, secrets, stopSignal());
      await withDirectoryHint(adding, secrets.ca !== undefined);
      terminal.stderr.write(
        `Added issuer ${input.name}. The first certificate registers its account.\n` +
          `  Try: vault certificate create --name NAME --domain DOMAIN --issuer ${input.name}\n`,
      );
    });
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
    const changes = parseInput(updateIssuerInput, {
      ...Object.fromEntries(named),
      ...(args.directory !== undefined && { directory_url: args.directory }),
    });
    const { 'ca-file': caFile, ...others } = args;
    const secrets: IssuerSecrets =
      caFile === 'none'
        ? { ...(await secretsFrom({ ...others, 'ca-file': undefined }, terminal)), ca: null }
        : await secretsFrom(args, terminal);
    const { eabKey, ca, acceptsTerms } = secrets;
    if (Object.keys(changes).length === 0 && eabKey === undefined && ca === undefined && !acceptsTerms) {
      throw new Misuse('nothing to change', 'Try: vault issuer update --help');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const changing = () => updateIssuer(vault, localCli, args.name, changes, secrets, stopSignal());
      await withDirectoryHint(changing, typeof ca === 'string');
      terminal.stderr.write(`Updated issuer ${args.name}.\n`);
    });
  },
});

const list = command({
  name: 'issuer list',
  description: 'List issuers',
  examples: [{ does: 'List all issuers', line: 'vault issuer list' }],
  options: jsonOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const issuers = (await viewIssuers(vault)).map((issuer) => ({
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
    }),
});

const remove = command({
  name: 'issuer remove',
  description: 'Remove an issuer: accounts at an ACME CA stay, the keys of a private CA do not',
  examples: [
    { does: 'Remove an issuer that no certificate uses', line: 'vault issuer remove --name inside' },
  ],
  options: { ...nameOption, ...yesOption },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const issuer = (await viewIssuers(vault)).find(({ name }) => name === args.name);
      // The built-in CA is never removed.
      if (issuer !== undefined && args.name !== localCaName) {
        await confirmLoss(terminal, args, {
          question: `Remove issuer ${args.name}${lostWith(issuer)}?`,
          // Everything else is configuration that "issuer add" takes again.
          isPermanent: lostWith(issuer) !== '',
        });
      }
      await removeIssuer(vault, localCli, args.name);
      terminal.stderr.write(`Removed issuer ${args.name}.\n`);
    }),
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

async function secretsFrom(args: CaArguments, terminal: Terminal): Promise<IssuerSecrets> {
  const { 'eab-hmac-key-file': keyFile, 'ca-file': caFile } = args;
  return {
    eabKey: keyFile === undefined ? undefined : await readEabKey(keyFile, terminal),
    ca: caFile === undefined ? undefined : await readTrust(caFile, terminal),
    acceptsTerms: args['accept-terms'],
  };
}

/** Runs `work`; rethrows an AcmeError with a hint that names the option to check. */
async function withDirectoryHint(work: () => Promise<void>, hasCaFile: boolean): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AcmeError) || error.kind === 'aborted') throw error;
    throw new OperatorError(error.message, { hint: hintFor(error, hasCaFile), cause: error });
  }
}

function hintFor({ kind, message, cause }: AcmeError, hasCaFile: boolean): string {
  if (cause instanceof OutboundError && cause.reason === 'untrusted') {
    return hasCaFile
      ? 'No certificate in --ca-file issued it. Use the root of the chain that this server sends.'
      : 'If the CA has its own root, pass it with --ca-file.';
  }
  if (cause instanceof OutboundError && cause.reason === 'refused') {
    return 'If the CA is yours, add its address to allow_outbound in vault.yaml or to CERTVAULT_ALLOW_OUTBOUND, also for "vault serve".';
  }
  if (kind === 'network' || kind === 'timeout') {
    return 'Check the address, the firewall and, behind a proxy, HTTPS_PROXY and NO_PROXY.';
  }
  if (/must use https/.test(message)) return 'Use an https:// URL in --directory.';
  return 'Check --directory: use the full ACME directory URL from the documentation of the CA.';
}
