/** `vault backup`: the whole vault in one file, while it goes on working. */
import { createReadStream, openSync, unlinkSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../../base/operator-error.ts';
import { localCli } from '../../domain/audit/audit.ts';
import {
  type BackupOrder,
  backUpThrough,
  backUpTo,
  passphraseComplaint,
} from '../../domain/backup/backup.ts';
import { aboutBackup, checkBackup } from '../../domain/backup/backup-file.ts';
import { command } from '../runtime/command.ts';
import { passphraseOption, readNewPassphrase } from '../runtime/passphrase.ts';
import { withVault } from '../runtime/with-vault.ts';
import { Misuse } from '../terminal/misuse.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const backupCommand = command({
  name: 'backup',
  description: 'write the whole vault to one file, while it goes on working',
  examples: [
    {
      does: 'Write the vault to a file; the master key is kept elsewhere',
      line: 'vault backup vault.backup',
    },
    {
      does: 'With the master key under a passphrase',
      line: 'vault backup vault.backup --with-master-key --passphrase-file passphrase.txt --replace',
    },
    { does: 'To another machine', line: 'vault backup - | ssh backup.example.com "cat > vault.backup"' },
  ],
  options: {
    file: {
      type: 'string',
      positional: true,
      valueHint: 'FILE',
      required: true,
      description: 'where to write it; - is standard output',
    },
    'with-master-key': {
      type: 'boolean',
      description: 'put the master key in, sealed under a passphrase',
    },
    ...passphraseOption,
    replace: { type: 'boolean', description: 'replace an earlier backup of this name' },
  },
  run: async (args, terminal) => {
    if (args.file === '-' && terminal.stdout.isTTY) {
      throw new Misuse('a backup is nothing for a terminal', 'Send it somewhere: vault backup - > FILE');
    }
    if (!args['with-master-key'] && args['passphrase-file'] !== undefined) {
      throw new Misuse(
        '--passphrase-file is for --with-master-key',
        'Add --with-master-key, or leave it out.',
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
          ? `${about}\nThe master key (${keyId}) is not in it: keep a copy of that elsewhere.\n`
          : `${about}\nThe master key (${keyId}) is in it, under the passphrase.\n`,
      );
    });
  },
});

async function newPassphrase(
  args: { readonly 'passphrase-file': string | undefined },
  terminal: Terminal,
): ReturnType<typeof readNewPassphrase> {
  const passphrase = await readNewPassphrase(args['passphrase-file'], terminal);
  const complaint = passphraseComplaint(passphrase);
  if (complaint === undefined) return passphrase;
  throw new OperatorError(`the passphrase cannot be used: ${complaint}`, {
    hint: 'Whoever finds the backup can guess for years. Nothing was written.',
  });
}

/** Sends a file that loses its name first, so that nothing is left behind whatever happens to the reader. */
async function send(draft: string, { stdout }: Terminal): Promise<void> {
  const descriptor = openSync(draft, 'r');
  unlinkSync(draft);
  // Elsewhere a reader that stops early is content; here it has half a backup, and must be told.
  stdout.removeAllListeners('error');
  try {
    await pipeline(createReadStream('', { fd: descriptor }), stdout);
  } catch (error) {
    throw new OperatorError(`the backup was not taken whole: ${(error as Error).message}`, {
      hint: 'What the reader has is no backup. Nothing was recorded.',
      cause: error,
    });
  }
}
