/** `vault master-key …`: shows, rotates, removes, seals and unseals master keys. */
import { OperatorError } from '../../../base/operator-error.ts';
import { describeFileError } from '../../../base/system-error.ts';
import { keyIn, readKeyFile } from '../../../crypto/secrets/master-key-file.ts';
import { PassphraseKey } from '../../../crypto/secrets/passphrase-key.ts';
import { passphraseCost } from '../../../crypto/secrets/passphrase-seal.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { passphraseIssue } from '../../../domain/backup/backup.ts';
import { checkBackup } from '../../../domain/backup/backup-file.ts';
import { backUpByPlan } from '../../../domain/backup/backup-schedule.ts';
import { finishRestore } from '../../../domain/backup/restore-swap.ts';
import type { SecretsContext } from '../../../domain/contexts.ts';
import {
  openDatabase,
  refuseUnsafePlace,
  type VaultDatabase,
} from '../../../domain/instance/vault-database.ts';
import { requireVault } from '../../../domain/instance/vault-presence.ts';
import { rotateMasterKey } from '../../../domain/master-key/master-key-rotation.ts';
import { sealKeyFiles } from '../../../domain/master-key/master-key-sealing.ts';
import { type MasterKeyView, masterKeyStatus } from '../../../domain/master-key/master-key-status.ts';
import type { Vault } from '../../../domain/vault.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { passphrasePrompt, Unlocking } from '../../runtime/master-keys.ts';
import { passphraseOption, readNewPassphrase } from '../../runtime/passphrase.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import { refuseExposedKeyFile, refuseExposedVault } from '../../terminal/private-files.ts';
import { progress } from '../../terminal/progress.ts';
import { table } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { withKeyFiles } from './master-key-access.ts';
import { removeCommand } from './master-key-remove.ts';

const status = command({
  name: 'master-key status',
  description: 'Show the master keys, their files and what they seal',
  examples: [{ does: 'Show all master keys', line: 'vault master-key status' }],
  options: { json: { type: 'boolean', description: 'print JSON' } },
  run: async (args, terminal) => {
    const settings = await readSettings(args, terminal.environment);
    // Does not open any key, because operators run this when one is missing.
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
            ? ['Key file', `${key_file}${source === 'credential' ? ' (systemd credential)' : ''}`]
            : ['Key', `printed by ${program}`],
          ['Rotation', rotation === 'none' ? 'none' : 'not finished; "vault master-key rotate" resumes it'],
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
  description: 'Rotate the master key, or resume a rotation',
  examples: [{ does: 'Rotate to a new key; the server can keep running', line: 'vault master-key rotate' }],
  options: {
    'new-master-key-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a file with the new key (default: generate one)',
    },
    force: {
      type: 'boolean',
      description: 'rotate although the recorded server does not have the next key',
    },
  },
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, settings) => {
      const newKey = await givenKey(args['new-master-key-file'], settings, terminal);
      const { show, end } = progress(terminal.stderr);
      const outcome = await rotateMasterKey(vault, {
        actor: localCli,
        newKey,
        force: args.force,
        report: (step, blobs) => {
          // One line per batch would flood a log file.
          if (step === 'sealed' && terminal.stderr.isTTY) show(`Secrets sealed with the new key: ${blobs}`);
          if (step === 'resumed') show('Resuming an unfinished rotation');
        },
      }).finally(end);
      const say = (line: string) => terminal.stderr.write(`${line}\n`);
      const count = `${outcome.blobs} secret${outcome.blobs === 1 ? '' : 's'}`;
      say(`Rotated to master key ${outcome.to}; resealed ${count}.`);
      for (const record of outcome.damaged) say(`Already damaged, not resealed: ${record}`);
      if (outcome.files === 'left') {
        say(`${settings.masterKeyFile} still holds the old key, because this command cannot change it.`);
        say(`Put key ${outcome.to} there, then restart the server.`);
      }
      for (const id of outcome.from) say(`Older backups need key ${id}. Keep it as long as those backups.`);
      say(`Keep a copy of the new key on another machine: ${settings.masterKeyFile}`);
      await backUpAfterRotation(vault, await settingsInUse(vault, settings), terminal);
    }),
});

const seal = command({
  name: 'master-key seal',
  description: 'Seal the key file under a new passphrase',
  examples: [
    {
      does: 'Seal the key file under a passphrase from a file',
      line: 'vault master-key seal --passphrase-file passphrase.txt',
    },
  ],
  options: passphraseOption,
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, { masterKeyFile }) => {
      const question = 'New passphrase for the master key: ';
      const passphrase = await readNewPassphrase(args['passphrase-file'], terminal, question);
      const issue = passphraseIssue(passphrase);
      if (issue !== undefined) {
        throw new OperatorError(`passphrase refused: ${issue}`, {
          hint: 'An attacker who finds the file can guess offline. Nothing was changed.',
        });
      }
      const lock = await PassphraseKey.fresh(vault.world, passphrase, passphraseCost);
      await resealFiles(vault, terminal, lock, passphrase);
      terminal.stderr.write(
        `Sealed ${masterKeyFile}. Opening the vault now needs the passphrase: from a file\n` +
          '(--master-key-passphrase-file), from the credential "master-key-passphrase", or typed at a terminal.\n' +
          'Restart the server before the next rotation. The disk may still hold the unsealed key.\n',
      );
    }),
});

const unseal = command({
  name: 'master-key unseal',
  description: 'Remove the passphrase from the key file',
  examples: [{ does: 'Remove the passphrase', line: 'vault master-key unseal' }],
  options: {},
  run: (args, terminal) =>
    withKeyFiles(args, terminal, async (vault, { masterKeyFile }) => {
      await resealFiles(vault, terminal, undefined, undefined);
      terminal.stderr.write(`Unsealed ${masterKeyFile}: anyone who can read the file has the key.\n`);
    }),
});

export const masterKeyCommands = commandGroup('master-key', 'Show, rotate and seal the master key', {
  status,
  rotate,
  remove: removeCommand,
  seal,
  unseal,
});

/**
 * Makes a backup that needs the new key only, if a directory for scheduled backups is set. The rotation succeeded
 * anyway.
 */
async function backUpAfterRotation(
  vault: Vault,
  { backups }: Settings,
  { stderr, version }: Terminal,
): Promise<void> {
  if (backups === undefined) return;
  try {
    const { made } = await backUpByPlan(vault, backups, { actor: localCli, version, verify: checkBackup });
    if (made !== undefined) stderr.write(`Created a backup that needs the new key only: ${made}\n`);
  } catch (error) {
    stderr.write(
      `Warning: no backup with the new key: ${describeFileError(error)}\n  Try: vault backup FILE\n`,
    );
  }
}

async function resealFiles(
  vault: SecretsContext,
  { stderr }: Terminal,
  lock: PassphraseKey | undefined,
  passphrase: Parameters<typeof PassphraseKey.for>[0] | undefined,
): Promise<void> {
  const { left } = await sealKeyFiles(vault, localCli, lock, async (file) => {
    // An interrupted attempt may have sealed this file under the new passphrase already.
    const own = file.kind === 'sealed' && passphrase && (await PassphraseKey.for(passphrase, file.sealed));
    return keyIn(file, vault.keyring.lock) ?? keyIn(file, own || undefined);
  });
  for (const path of left) stderr.write(`Not changed, sealed under another passphrase: ${path}\n`);
}

/** The database alone, without its master key. */
async function openWithoutKey(settings: Settings, { world }: Terminal): Promise<VaultDatabase> {
  refuseExposedVault(settings, 'refuse');
  refuseUnsafePlace(settings.dataDir);
  finishRestore(settings.dataDir);
  requireVault(settings);
  return openDatabase(settings.dataDir, world);
}

async function givenKey(path: string | undefined, settings: Settings, terminal: Terminal) {
  if (path === undefined) return undefined;
  refuseExposedKeyFile(path);
  const file = readKeyFile(path);
  if (file === undefined) {
    throw new OperatorError(`${path}: no such file`, {
      hint: `Fix: (umask 077 && head -c 32 /dev/urandom >${path})`,
    });
  }
  return keyIn(file, await new Unlocking(settings, passphrasePrompt(terminal)).lockOf(file));
}

type Source = 'file' | 'credential' | 'command';

function sourceOf({ masterKeyFile, masterKeyCommand, credentialsDir }: Settings): Source {
  if (masterKeyCommand !== undefined) return 'command';
  const isCredential = credentialsDir !== undefined && masterKeyFile.startsWith(`${credentialsDir}/`);
  return isCredential ? 'credential' : 'file';
}

function rowOf({ id, state, since, blobs, files }: MasterKeyView, source: Source): string[] {
  const absent = source === 'command' && state === 'current' ? 'none, from the command' : 'missing';
  const counts = Object.entries(blobs).map(([place, count]) => `${count} ${place.split('.')[0]}`);
  const where = files.map(({ path, sealed }) => (sealed ? `${path} (sealed)` : path));
  return [id, state, since ?? '-', counts.join(', ') || 'nothing', where.join(', ') || absent];
}
