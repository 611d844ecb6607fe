/** `vault ca export-root-key` and `import-root-key`: the key of a root leaves the vault for a file, and comes back. */
import { OperatorError } from '../../../base/operator-error.ts';
import type { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { passphraseIssue } from '../../../domain/backup/backup.ts';
import { localCaName } from '../../../domain/private-ca/local-ca.ts';
import { exportRootKey, importRootKeyFile } from '../../../domain/private-ca/offline-root.ts';
import { command } from '../../runtime/command.ts';
import { passphraseOption, readKnownPassphrase, readNewPassphrase } from '../../runtime/passphrase.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { writeNewPrivateFile } from '../../terminal/new-private-file.ts';
import type { Terminal } from '../../terminal/terminal.ts';

export const issuerOption = {
  issuer: {
    type: 'string',
    valueHint: 'NAME',
    names: 'issuers',
    description: `the private CA (default: ${localCaName})`,
  },
} as const;

const question = 'Passphrase for the key of the root: ';

export const exportRootKeyCommand = command({
  name: 'ca export-root-key',
  description: 'Move the key of a root from the vault to an encrypted file',
  examples: [
    {
      does: 'Move the key of the built-in CA to a file, for a memory stick',
      line: 'vault ca export-root-key root.key --passphrase-file passphrase.txt',
    },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'the file to write: encrypted PKCS#8 in PEM; it must not exist',
    },
    ...passphraseOption,
    ...issuerOption,
  },
  run: async (args, terminal) => {
    if (args.file === '-') {
      throw new Misuse(
        'refusing to write the key to standard output',
        'Name a file; it is read back before the key is removed.',
      );
    }
    const passphrase = await newPassphrase(args['passphrase-file'], terminal);
    const issuer = args.issuer ?? localCaName;
    await withVault(args, terminal, 'refuse', async (vault) => {
      const { issuesUntil } = await exportRootKey(vault, {
        actor: localCli,
        issuer,
        passphrase,
        keep: (pem) => writeNewPrivateFile(args.file, pem),
      });
      terminal.stderr.write(
        `Moved the key of the root of ${issuer} to ${args.file}. Backups from before still contain it.\n` +
          `The private CA issues without it until ${formatTimestamp(issuesUntil)}. For the next intermediate, import it:\n` +
          `  vault ca import-root-key ${args.file} --passphrase-file FILE${issuer === localCaName ? '' : ` --issuer ${issuer}`}\n`,
      );
    });
  },
});

export const importRootKeyCommand = command({
  name: 'ca import-root-key',
  description: 'Bring the key of a root back into the vault',
  examples: [
    {
      does: 'Bring the key back for the next intermediate',
      line: 'vault ca import-root-key root.key --passphrase-file passphrase.txt',
    },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'the file that export-root-key wrote; - for standard input',
    },
    ...passphraseOption,
    ...issuerOption,
  },
  run: async (args, terminal) => {
    if (args.file === '-' && args['passphrase-file'] === '-') {
      throw new Misuse(
        'standard input cannot be both the key and the passphrase',
        'Name a file for one of them.',
      );
    }
    const file = await readInput(args.file, terminal);
    const passphrases = await readKnownPassphrase(args['passphrase-file'], terminal, question);
    const issuer = args.issuer ?? localCaName;
    await withVault(args, terminal, 'refuse', async (vault) => {
      await importRootKeyFile(vault, { actor: localCli, issuer, file, passphrases });
      terminal.stderr.write(
        `Imported the key of the root of ${issuer}. Keep the file until you export the key again.\n`,
      );
    });
  },
});

/** A passphrase that `openssl pkey -passin file:` reads in the same way: one line. */
async function newPassphrase(file: string | undefined, terminal: Terminal): Promise<Secret<string>> {
  const passphrase = await readNewPassphrase(file, terminal, question);
  const issue = /[\r\n\0]/.test(passphrase.expose())
    ? 'a passphrase is one line'
    : passphraseIssue(passphrase);
  if (issue === undefined) return passphrase;
  throw new OperatorError(`passphrase refused: ${issue}`, {
    hint: 'An attacker who finds the file can guess offline. Nothing was written.',
  });
}
