/** `vault issuer …`: manages the CAs that issue certificates. */
import { X509Certificate } from 'node:crypto';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { encodePem, readPemBlocks } from '../../crypto/pem.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { createIssuerInput, parseInput, updateIssuerInput } from '../../domain/inputs.ts';
import { addIssuer, removeIssuer, updateIssuer } from '../../domain/issuance/issuer-changes.ts';
import { eabKeyIn } from '../../domain/issuance/issuer-inputs.ts';
import { viewIssuers } from '../../domain/issuance/issuer-views.ts';
import { type IssuerSecrets, knownDirectories } from '../../domain/issuance/issuers.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { withDirectoryHint } from '../runtime/directory-hint.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { withVault } from '../runtime/with-vault.ts';
import type { Arguments } from '../terminal/arguments.ts';
import { confirmLoss, yesOption } from '../terminal/confirmation.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { caOptions, nameOption } from './issuer-options.ts';

type CaArguments = Arguments<typeof caOptions>;

const add = command({
  name: 'issuer add',
  description: 'Add an ACME CA',
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
      does: 'Add your own ACME CA',
      line: 'vault issuer add --name inside --directory https://ca.example.internal/acme/acme/directory --ca-file root.pem',
    },
  ],
  options: { ...nameOption, ...caOptions },
  run: async (args, terminal) => {
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
  description: 'Change an ACME CA; "none" clears an option',
  examples: [
    {
      does: 'Change the contact address',
      line: 'vault issuer update --name letsencrypt --email hostmaster@example.com',
    },
    { does: 'Trust the public CAs again', line: 'vault issuer update --name inside --ca-file none' },
  ],
  options: { ...nameOption, ...caOptions },
  run: async (args, terminal) => {
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
        created_at: issuer.created_at,
      }));
      printList(terminal, args, issuers, {
        none: 'No issuers.',
        columns: [
          { title: 'NAME', holds: 'name' },
          'TYPE',
          { title: 'DIRECTORY', holds: 'text' },
          { title: 'CONTACT', holds: 'text' },
          'ACCOUNT',
          { title: 'PAUSED UNTIL', holds: 'time' },
        ],
        row: (issuer) => [
          issuer.name,
          issuer.type,
          issuer.directory_url ?? '-',
          issuer.email ?? '-',
          issuer.account ?? '-',
          issuer.paused_until ?? '-',
        ],
      });
    }),
});

const remove = command({
  name: 'issuer remove',
  description: 'Remove an ACME CA, but keep its accounts',
  examples: [
    { does: 'Remove an issuer that no certificate uses', line: 'vault issuer remove --name inside' },
  ],
  options: { ...nameOption, ...yesOption },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const issuer = (await viewIssuers(vault)).find(({ name }) => name === args.name);
      const hasSecret = typeof issuer?.eab_kid === 'string';
      if (issuer !== undefined) {
        await confirmLoss(terminal, args, {
          question: `Remove issuer ${args.name}${hasSecret ? ' and its key for external account binding' : ''}?`,
          // Everything else is configuration that "issuer add" takes again.
          isPermanent: hasSecret,
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

async function readTrust(path: string, terminal: Terminal): Promise<string> {
  const text = (await readInput(path, terminal)).toString('latin1');
  const blocks = readPemBlocks(text, path).filter(({ label }) => label === 'CERTIFICATE');
  if (blocks.length === 0) {
    throw new OperatorError(`no certificate in ${path}`, {
      hint: 'Use PEM blocks that begin with -----BEGIN CERTIFICATE-----.',
    });
  }
  if (!blocks.every(({ der }) => isCertificate(der))) {
    throw new OperatorError(`invalid certificate in ${path}`, {
      hint: 'The file is damaged. Download the PEM file of the root from the CA again.',
    });
  }
  return blocks.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
}

function isCertificate(der: Buffer): boolean {
  try {
    return new X509Certificate(der).raw.equals(der);
  } catch {
    // The message of OpenSSL does not help the operator.
    return false;
  }
}

async function readEabKey(path: string, terminal: Terminal): Promise<Secret> {
  const key = eabKeyIn((await readInput(path, terminal)).toString('latin1'));
  if (key !== undefined) return key;
  throw new OperatorError(`no HMAC key in ${path}`, {
    hint: 'Write the key to the file as the CA shows it: letters, digits, - and _ on one line.',
  });
}
