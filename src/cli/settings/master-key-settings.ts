/** The settings of the master key source: a file, sealed or not, or a program. */
import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import type { Found } from './setting-values.ts';

export const masterKeyOptions = {
  'master-key-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the master key file (default: master.key in the data directory)',
  },
  'master-key-passphrase-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'a file with the passphrase of a sealed master key (default: prompt for it)',
  },
  'master-key-command': {
    type: 'string',
    valueHint: 'PROGRAM',
    description: 'a program that prints the master key; a JSON list for a program with arguments',
  },
} as const;

/** A program (an absolute path) and its arguments. */
export type MasterKeyCommand = readonly [program: string, ...args: string[]];

export type MasterKeySettings = {
  /** `-` is standard input, and is also set if there is a command. */
  readonly masterKeyFile: string;
  /** What set the key file or the command; `default` if nothing did. */
  readonly masterKeyFrom?: 'setting' | 'credential' | 'default';
  /** Undefined if the passphrase may be prompted for. */
  readonly masterKeyPassphraseFile?: string | undefined;
  /** Used instead of the file. */
  readonly masterKeyCommand?: MasterKeyCommand | undefined;
};

/** Looks up a setting at one level: flags, environment or settings file. */
type Level = (name: keyof typeof masterKeyOptions) => Found | undefined;

/**
 * `levels` are flags, environment and settings file, in this order; the first that sets a file or a command wins.
 * `credentialsDir` is the directory of systemd credentials. Throws OperatorError if both a file and a command are set.
 */
export function masterKeySettings(
  levels: readonly Level[],
  dataDir: string,
  credentialsDir: string | undefined,
): MasterKeySettings {
  const level = levels.find((get) => get('master-key-command') ?? get('master-key-file'));
  const file = level?.('master-key-file');
  const command = level?.('master-key-command');
  const passphrase = levels.map((get) => get('master-key-passphrase-file')).find((found) => found);
  if (command !== undefined) {
    const other = file ?? passphrase;
    if (other === undefined) {
      return { masterKeyFile: '-', masterKeyFrom: 'setting', masterKeyCommand: programIn(command) };
    }
    throw new OperatorError(`${command.from} and ${other.from} exclude each other`, {
      hint: 'The master key comes either from a command or from a file. Remove one of the two settings.',
    });
  }
  return {
    ...fileIn(file?.value, dataDir, credentialsDir),
    masterKeyPassphraseFile:
      passphrase === undefined
        ? credential('master-key-passphrase', credentialsDir)
        : resolve(passphrase.value),
  };
}

function fileIn(
  named: string | undefined,
  dataDir: string,
  credentialsDir: string | undefined,
): Pick<MasterKeySettings, 'masterKeyFile' | 'masterKeyFrom'> {
  if (named !== undefined) {
    return { masterKeyFile: named === '-' ? named : resolve(named), masterKeyFrom: 'setting' };
  }
  const given = credential('master.key', credentialsDir);
  if (given !== undefined) return { masterKeyFile: given, masterKeyFrom: 'credential' };
  return { masterKeyFile: resolve(dataDir, 'master.key'), masterKeyFrom: 'default' };
}

/** The path of a systemd credential, if it exists. */
function credential(name: string, directory: string | undefined): string | undefined {
  const path = directory && resolve(directory, name);
  return path && existsSync(path) ? path : undefined;
}

function programIn({ value, from }: Found): MasterKeyCommand {
  const [program, ...args] = value.startsWith('[') ? listIn(value) : [value];
  if (
    program === undefined ||
    !isAbsolute(program) ||
    [program, ...args].some((word) => word.includes('\0'))
  ) {
    throw new OperatorError(`${from}: must be an absolute path, or a JSON list that begins with one`, {
      hint: 'Example: ["/usr/bin/age", "-d", "-i", "/etc/vault/age.key", "/etc/vault/master.key.age"]. The program runs without a shell.',
    });
  }
  return [program, ...args];
}

function listIn(value: string): string[] {
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) && parsed.every((word) => typeof word === 'string') ? parsed : [];
  } catch {
    // Invalid JSON; the caller reports it.
    return [];
  }
}
