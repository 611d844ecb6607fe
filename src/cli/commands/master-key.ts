/** `vault master-key …`: which keys there are and what they seal, a new one in place of the old, and the passphrase on them. */
import { join } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { keyIn, readKeyFile } from '../../crypto/master-key-file.ts';
import { PassphraseKey } from '../../crypto/passphrase-key.ts';
import { passphraseCost } from '../../crypto/passphrase-seal.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { passphraseComplaint } from '../../domain/backup/backup.ts';
import { finishRestore } from '../../domain/backup/restore-swap.ts';
import type { SecretsContext } from '../../domain/contexts.ts';
import { rotateMasterKey } from '../../domain/master-key/master-key-rotation.ts';
import { sealKeyFiles } from '../../domain/master-key/master-key-sealing.ts';
import {
  type MasterKeyView,
  masterKeyStatus,
  removeMasterKey,
} from '../../domain/master-key/master-key-status.ts';
import { openDatabase, refuseUnsafePlace, type VaultDatabase } from '../../domain/presence/vault-database.ts';
import type { Vault } from '../../domain/vault.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { askAt, Unlocking } from '../runtime/master-keys.ts';
import { requireVault } from '../runtime/open-vault.ts';
import { passphraseOption, readNewPassphrase } from '../runtime/passphrase.ts';
import { withVault } from '../runtime/with-vault.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { facts, jsonText, table } from '../terminal/output.ts';
import { refuseExposedKeyFile, refuseExposedVault } from '../terminal/private-files.ts';
import { progress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';

const status = command({
  name: 'master-key status',
  description: 'show the master keys: where they are, since when, and what each of them seals',
  examples: [{ does: 'See which keys there are, and what they seal', line: 'vault master-key status' }],
  options: { json: { type: 'boolean', description: 'print JSON, for programs' } },
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    // Without opening a key: this is what people look at when one is missing.
    const db = await openWithoutKey(settings, terminal);
    try {
      const { masterKeyCommand: [program] = [], masterKeyFile } = settings;
      const files = program === undefined ? masterKeyFile : undefined;
      const { key_file, rotation, keys } = await masterKeyStatus({ db }, files);
      const source = sourceOf(settings);
      if (args.json) {
        terminal.stdout.write(jsonText({ key_file, source, rotation, keys }));
        return;
      }
      terminal.stdout.write(
        facts([
          program === undefined
            ? ['Key file', `${key_file}${source === 'credential' ? ' (a credential of the service)' : ''}`]
            : ['Key', `printed by ${program}`],
          ['Rotation', rotation === 'none' ? 'none' : 'not ended; "vault master-key rotate" goes on with it'],
        ]),
      );
      terminal.stdout.write(
        `\n${table(
          ['KEY', 'STATE', 'SINCE', 'SEALS', 'FILE'],
          keys.map((key) => rowOf(key, source)),
        )}`,
      );
    } finally {
      await db.close();
    }
  },
});

const rotate = command({
  name: 'master-key rotate',
  description: 'put a new master key in the place of the current one, or go on where that was cut off',
  examples: [{ does: 'While the server serves', line: 'vault master-key rotate' }],
  options: {
    'new-master-key-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'the new key, where it shall not be made here',
    },
  },
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, settings) => {
      const newKey = await givenKey(args['new-master-key-file'], settings, terminal);
      const { show, end } = progress(terminal.stderr);
      const outcome = await rotateMasterKey(vault, {
        actor: localCli,
        newKey,
        report: (step, blobs) => {
          // A line for each turn would fill a log.
          if (step === 'sealed' && terminal.stderr.isTTY) show(`Sealed by the new key: ${blobs}`);
          if (step === 'resumed') show('Going on with a rotation that has not ended');
        },
      }).finally(end);
      const say = (line: string) => terminal.stderr.write(`${line}\n`);
      const count = `${outcome.blobs} secret${outcome.blobs === 1 ? '' : 's'}`;
      say(`Master key ${outcome.to} seals everything now, ${count} of before too.`);
      for (const record of outcome.damaged) say(`Damaged before, and left as it is: ${record}`);
      if (outcome.files === 'left') {
        say(`${settings.masterKeyFile} still holds the old key and cannot be changed from here.`);
        say(`Put the key ${outcome.to} there, then start the server again.`);
      }
      for (const id of outcome.from) say(`Backups from before need ${id}: keep it as long as you keep them.`);
      say(`Keep a copy of the new key elsewhere: ${settings.masterKeyFile}`);
    }),
});

const remove = command({
  name: 'master-key remove',
  description: 'remove the file of a key that nothing in the vault needs any more',
  examples: [{ does: 'Remove an unused key', line: 'vault master-key remove --id 0123456789abcdef' }],
  options: {
    id: { type: 'string', valueHint: 'ID', required: true, description: 'the key, as in the status' },
  },
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, { masterKeyFile }) => {
      const paths = await removeMasterKey(vault, localCli, masterKeyFile, args.id);
      for (const path of paths) terminal.stderr.write(`Removed: ${path}\n`);
      terminal.stderr.write('Backups that need this key can only be restored with a copy of it.\n');
    }),
});

const seal = command({
  name: 'master-key seal',
  description: 'seal the key file under a passphrase, or under another',
  examples: [
    {
      does: 'Seal the key file under a passphrase in a file',
      line: 'vault master-key seal --passphrase-file passphrase.txt',
    },
  ],
  options: passphraseOption,
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, { masterKeyFile }) => {
      const question = 'New passphrase for the master key: ';
      const passphrase = await readNewPassphrase(args['passphrase-file'], terminal, question);
      const complaint = passphraseComplaint(passphrase);
      if (complaint !== undefined) {
        throw new OperatorError(`the passphrase cannot be used: ${complaint}`, {
          hint: 'Whoever finds the file can guess for years. Nothing was changed.',
        });
      }
      const lock = await PassphraseKey.fresh(vault.world, passphrase, passphraseCost);
      await resealFiles(vault, terminal, lock, passphrase);
      terminal.stderr.write(
        `${masterKeyFile} is sealed. Whatever opens the vault needs the passphrase from now on: from a file\n` +
          '(--master-key-passphrase-file), from the credential "master-key-passphrase", or typed at a terminal.\n' +
          'Start the server again before the next rotation. The disk may keep what the file held until now.\n',
      );
    }),
});

const unseal = command({
  name: 'master-key unseal',
  description: 'take the passphrase off the key file',
  examples: [{ does: 'Take the passphrase off again', line: 'vault master-key unseal' }],
  options: {},
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, { masterKeyFile }) => {
      await resealFiles(vault, terminal, undefined, undefined);
      terminal.stderr.write(`${masterKeyFile} holds the key itself: whoever reads it has it.\n`);
    }),
});

export const masterKeyCommands = commandGroup('master-key', 'the key that seals all secrets of the vault', {
  status,
  rotate,
  remove,
  seal,
  unseal,
});

/** The command remains the source of the key, so the operator has to store the new key there. */
const keyFilesFromCommand =
  'Stop the vault, write the key to a file in memory (umask 077; COMMAND >/dev/shm/KEY), run this with\n' +
  '  --master-key-file /dev/shm/KEY, store the new key where the command finds it, remove the files, and start again.';

/** As `withVault`, for what makes or removes files beside the key file. */
async function withKeyFiles(
  args: Parameters<typeof readSettings>[0],
  terminal: Terminal,
  work: (vault: Vault, settings: Settings) => Promise<void>,
): Promise<void> {
  const { masterKeyCommand } = await readSettings(args, terminal.environment);
  if (masterKeyCommand !== undefined) {
    throw new OperatorError(`the master key comes from ${masterKeyCommand[0]}, and this needs key files`, {
      hint: keyFilesFromCommand,
    });
  }
  return withVault(args, terminal, 'refuse', async (vault, settings) => {
    if (settings.masterKeyFile === '-') {
      throw new OperatorError('beside a master key from standard input there is no place for key files', {
        hint: 'Nothing was changed. Name the key file itself with --master-key-file.',
      });
    }
    await work(vault, settings);
  });
}

async function resealFiles(
  vault: SecretsContext,
  { stderr }: Terminal,
  lock: PassphraseKey | undefined,
  passphrase: Parameters<typeof PassphraseKey.for>[0] | undefined,
): Promise<void> {
  const { left } = await sealKeyFiles(vault, localCli, lock, async (file) => {
    // A file that an earlier attempt has sealed under this passphrase, and then was stopped.
    const own = file.kind === 'sealed' && passphrase && (await PassphraseKey.for(passphrase, file.sealed));
    return keyIn(file, vault.keyring.lock) ?? keyIn(file, own || undefined);
  });
  for (const path of left) stderr.write(`Left as it is, under a passphrase of its own: ${path}\n`);
}

/** The database alone, without its master key. */
async function openWithoutKey(settings: Settings, { world }: Terminal): Promise<VaultDatabase> {
  const path = join(settings.dataDir, 'vault.db');
  refuseExposedVault(settings, 'refuse');
  refuseUnsafePlace(settings.dataDir);
  finishRestore(settings.dataDir);
  requireVault(settings);
  return openDatabase(path, world);
}

async function givenKey(path: string | undefined, settings: Settings, terminal: Terminal) {
  if (path === undefined) return undefined;
  refuseExposedKeyFile(path);
  const file = readKeyFile(path);
  if (file === undefined) {
    throw new OperatorError(`there is no ${path}`, {
      hint: `Make a key first: head -c 32 /dev/urandom >${path} && chmod 600 ${path}`,
    });
  }
  return keyIn(file, await new Unlocking(settings, askAt(terminal)).lockOf(file));
}

type Source = 'file' | 'credential' | 'command';

function sourceOf({ masterKeyFile, masterKeyCommand, credentialsDir }: Settings): Source {
  if (masterKeyCommand !== undefined) return 'command';
  const isCredential = credentialsDir !== undefined && masterKeyFile.startsWith(`${credentialsDir}/`);
  return isCredential ? 'credential' : 'file';
}

function rowOf({ id, state, since, blobs, files }: MasterKeyView, source: Source): string[] {
  const absent = source === 'command' && state === 'current' ? 'none, by the command' : 'missing';
  const counts = Object.entries(blobs).map(([place, count]) => `${count} ${place.split('.')[0]}`);
  const where = files.map(({ path, sealed }) => (sealed ? `${path} (sealed)` : path));
  return [id, state, since ?? '-', counts.join(', ') || 'nothing', where.join(', ') || absent];
}
