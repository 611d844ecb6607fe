/** `vault backup`: writes the whole vault to one file, also while the server runs. */
import { createReadStream, openSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { removeFile } from '../../../base/durable-file.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { describeSystemError } from '../../../base/system-error.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { type BackupOrder, backUpThrough, backUpTo, passphraseIssue } from '../../../domain/backup/backup.ts';
import { aboutBackup, checkBackup } from '../../../domain/backup/backup-file.ts';
import { command } from '../../runtime/command.ts';
import { passphraseOption, readNewPassphrase } from '../../runtime/passphrase.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';

export const backupCommand = command({
  name: 'backup',
  description: 'Back up the whole vault to one file, while it runs',
  examples: [
    {
      does: 'Back up to a file, without the master key',
      line: 'vault backup vault.backup',
    },
    {
      does: 'Include the master key, sealed under a passphrase',
      line: 'vault backup vault.backup --with-master-key --passphrase-file passphrase.txt --replace',
    },
    {
      does: 'Back up to another machine',
      line: 'vault backup - | ssh backup.example.com "cat > vault.backup"',
    },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'the file to write; - for standard output',
    },
    'with-master-key': {
      type: 'boolean',
      description: 'include the master key, sealed under a passphrase',
    },
    ...passphraseOption,
    replace: { type: 'boolean', description: 'replace an existing backup file' },
  },
  run: async (args, terminal) => {
    if (args.file === '-' && terminal.stdout.isTTY) {
      throw new Misuse('refusing to write a backup to the terminal', 'Try: vault backup - > FILE');
    }
    if (!args['with-master-key'] && args['passphrase-file'] !== undefined) {
      throw new Misuse(
        '--passphrase-file needs --with-master-key',
        'Add --with-master-key or remove --passphrase-file.',
      );
    }
    const passphrase = args['with-master-key'] ? await newPassphrase(args, terminal) : undefined;
    await withVault(args, terminal, 'refuse', async (vault) => {
      const name = args.file === '-' ? 'the backup' : args.file;
      const order: BackupOrder = {
        actor: localCli,
        version: terminal.version,
        passphrase,
        verify: (draft, masterKey) => checkBackup(draft, masterKey, name),
      };
      const manifest =
        args.file === '-'
          ? await backUpThrough(vault, order, (draft) => send(draft, terminal))
          : await backUpTo(vault, order, args.file, args.replace ? 'replace' : 'refuse');
      const [keyId] = manifest.key_ids;
      const about = aboutBackup(name, manifest);
      terminal.stderr.write(
        passphrase === undefined
          ? `${about}\nThe backup does not include the master key (${keyId}). Keep a copy of the key elsewhere.\n`
          : `${about}\nThe backup includes the master key (${keyId}), sealed under the passphrase.\n`,
      );
    });
  },
});

async function newPassphrase(
  args: { readonly 'passphrase-file': string | undefined },
  terminal: Terminal,
): ReturnType<typeof readNewPassphrase> {
  const passphrase = await readNewPassphrase(args['passphrase-file'], terminal);
  const issue = passphraseIssue(passphrase);
  if (issue === undefined) return passphrase;
  throw new OperatorError(`passphrase refused: ${issue}`, {
    hint: 'An attacker who finds the backup can guess offline. No backup was written.',
  });
}

/** Sends a file that is unlinked first, so that no draft is left behind if the reader fails. */
async function send(draft: string, { stdout }: Terminal): Promise<void> {
  const descriptor = openSync(draft, 'r');
  removeFile(draft);
  // Other commands ignore EPIPE; here it means that the reader has half a backup.
  stdout.removeAllListeners('error');
  try {
    await pipeline(createReadStream('', { fd: descriptor }), stdout);
  } catch (error) {
    throw new OperatorError(`backup incomplete: ${describeSystemError(error)}`, {
      hint: 'Discard what the reader received; it cannot be restored.',
      cause: error,
    });
  }
}
