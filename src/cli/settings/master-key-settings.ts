/** Where the master key comes from, by the settings: a file, sealed under a passphrase or not, or a program. */
import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import type { Found } from './setting-values.ts';

export const masterKeyOptions = {
  'master-key-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the master key (default: master.key in the data directory)',
  },
  'master-key-passphrase-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the passphrase, where the master key is sealed under one (default: ask for it)',
  },
  'master-key-command': {
    type: 'string',
    valueHint: 'PROGRAM',
    description: 'a program that prints the master key; with arguments as a JSON list',
  },
} as const;

/** A program (an absolute path) and its arguments. */
export type MasterKeyCommand = readonly [program: string, ...args: string[]];

export type MasterKeySettings = {
  /** `-` is standard input, and stands here where there is a command. */
  readonly masterKeyFile: string;
  /** What named the key file or the command; `default` where nothing did. */
  readonly masterKeyFrom?: 'setting' | 'credential' | 'default';
  /** Undefined if the passphrase may be prompted for. */
  readonly masterKeyPassphraseFile?: string | undefined;
  /** Takes the place of the file. */
  readonly masterKeyCommand?: MasterKeyCommand | undefined;
};

/** A setting as the flags, the environment or the settings file have it. */
type Level = (name: keyof typeof masterKeyOptions) => Found | undefined;

/**
 * `levels` are flags, environment and settings file, in this order: the first that names a file or a command decides.
 * `credential` is the path of a file that the service manager made. Throws OperatorError where file and command collide.
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
      hint: 'The master key comes from a command or from a file: remove one of the two settings.',
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

/** A file that the service manager made for this process. */
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
    throw new OperatorError(`${from}: not an absolute path, nor a JSON list that begins with one`, {
      hint: 'Write an absolute path, or a JSON list of it and its arguments, such as ["/usr/bin/age", "-d", "-i", "/etc/vault/age.key", "/etc/vault/master.key.age"]. No shell is asked.',
    });
  }
  return [program, ...args];
}

function listIn(value: string): string[] {
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) && parsed.every((word) => typeof word === 'string') ? parsed : [];
  } catch {
    // No JSON is no program; the caller says so.
    return [];
  }
}
