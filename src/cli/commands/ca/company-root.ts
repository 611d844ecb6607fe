/** `vault ca csr` and `vault ca import`: a private CA gets its intermediate from the CA of a company. */
import { basename, dirname } from 'node:path';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { requestAuthority } from '../../../domain/private-ca/ca-requests.ts';
import { localCaName } from '../../../domain/private-ca/local-ca.ts';
import { importCompanyAuthority } from '../../../domain/renewals/company-import.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { writePrivateFiles } from '../../terminal/private-output.ts';
import { type Imported, importThere, requestThere } from './cas-there.ts';
import { issuerOption } from './root-key.ts';
import { queuedRenewals, requireCa } from './rotate.ts';

export const caCsrCommand = command({
  name: 'ca csr',
  description: "Print a CSR with which a company's CA issues the intermediate of a private CA",
  examples: [
    { does: 'Write the CSR of the built-in CA to a file', line: 'vault ca csr --out vault.csr' },
    { does: 'Replace the request that is pending', line: 'vault ca csr --new --out vault.csr --force' },
  ],
  options: {
    ...issuerOption,
    out: { type: 'string', valueHint: 'FILE', description: 'the file to write; standard output by default' },
    new: { type: 'boolean', description: 'generate another key; the CSR that is pending becomes void' },
    force: { type: 'boolean', description: 'replace a file with other content' },
  },
  run: async (args, terminal) => {
    const issuer = args.issuer ?? localCaName;
    const { out = '-' } = args;
    const options = { replace: args.new === true };
    const { csr, createdAt, isNew } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => requestAuthority(vault, localCli, await requireCa(vault, issuer), options),
      (remote) => requestThere(remote, issuer, options),
    );
    if (out === '-') terminal.stdout.write(csr);
    else {
      const file = { name: basename(out), path: out, content: csr };
      writePrivateFiles(terminal.world, dirname(out), [file], args.force === true ? 'replace' : 'refuse');
    }
    const what = isNew
      ? 'Generated a key for'
      : `The request of ${formatTimestamp(createdAt)} is pending for`;
    const option = issuer === localCaName ? '' : ` --issuer ${issuer}`;
    terminal.stderr.write(
      `${what} an intermediate of ${issuer}. Send the CSR to the CA of the company, and import what it returns:\n` +
        `  vault ca import --chain FILE${option}\n`,
    );
  },
});

export const importCaCommand = command({
  name: 'ca import',
  description: "Issue under a company's root: import the intermediate that its CA signed",
  examples: [
    {
      does: 'Import the certificate for the CSR with the intermediates and the root of the company',
      line: 'vault ca import --chain chain.pem',
    },
  ],
  options: {
    ...issuerOption,
    chain: {
      type: 'string',
      valueHint: 'FILE',
      required: true,
      description:
        'PEM in any order: the certificate for the CSR, the intermediates and the root of the company; - for standard input',
    },
    force: {
      type: 'boolean',
      description:
        "import although the company's CA does not permit names of certificates, whose renewals fail then",
    },
  },
  run: async (args, terminal) => {
    const issuer = args.issuer ?? localCaName;
    const file = await readInput(args.chain, terminal);
    const options = { force: args.force === true };
    const { root, notAfter, formerUntil, queued } = await onVault<Imported>(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const ca = await requireCa(vault, issuer);
        const imported = await importCompanyAuthority(vault, localCli, ca, file, options);
        return imported.former === undefined ? { ...imported, formerUntil: undefined } : imported;
      },
      (remote) => importThere(remote, issuer, file, options),
    );
    const lines = [
      `${issuer} issues under ${root} from now on, until ${formatTimestamp(notAfter)}.`,
      queuedRenewals(queued),
      formerUntil !== undefined &&
        `Clients of ${issuer} have to trust the root of the company now.` +
          (formerUntil > terminal.world.now()
            ? ` The roots of ${issuer} for clients include the former one until ${formatTimestamp(formerUntil)}.`
            : ''),
    ];
    terminal.stderr.write(lines.map((text) => (text === false ? '' : `${text}\n`)).join(''));
  },
});
