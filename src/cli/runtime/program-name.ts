/**
 * The name of this program: `vault`, or `certificate-vault` on machines where another program is called `vault`.
 * Sources say `vault`; what people read gets the name here, when it is printed.
 */
import { accessSync, constants, realpathSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join, resolve } from 'node:path';
import type { Environment } from '../terminal/terminal.ts';

export type ProgramName = 'vault' | 'certificate-vault';

/** Tells a child process the name, because Node starts it by the path of the executable. */
export const nameVariable = 'CERTVAULT_PROGRAM_NAME';

let name: ProgramName = 'vault';

/** Sets the name from the word that started this process. Links and copies count: `argv0` is what was typed. */
export function nameProgram(argv0: string, environment: Environment): void {
  name = [basename(argv0).replace(/\.exe$/, ''), environment[nameVariable]].includes('certificate-vault')
    ? 'certificate-vault'
    : 'vault';
}

/** The name of this program. */
export function programName(): ProgramName {
  return name;
}

/**
 * Names this process in ps, top and pgrep, where Node calls its main thread `node-MainThread`. The kernel keeps the
 * first 15 characters.
 */
export function nameProcess(name: string): void {
  try {
    writeFileSync(nameFile, name);
  } catch {
    // Not Linux, or /proc is missing or read-only: the process is called as its executable or as Node names it.
  }
}

/** Unlike `process.title`, writing this file (proc_pid_comm(5)) leaves the arguments in the list of processes. */
const nameFile = '/proc/self/comm';

/**
 * `vault` before the first word of a command; a test compares these with the commands. A man page writes hyphens as \-,
 * and help on a terminal begins with a color.
 */
const commandLine =
  /(?<=^|[\s"'`(;|]|\[\d{1,2}m)vault(?= (?:(?:serve|demo|systemd\\?-unit|doctor|certificate|inspect|renewals|replace|fleet|endpoint|deploy\\?-target|api\\?-key|enrollment|acme\\?-client|admin|oidc|login|logout|issuer|ca|acme\\?-account|dns\\?-provider|notification|audit|backup|restore|database|master\\?-key|apply|export|completion|man|licenses|version|help)(?![\w-])|COMMAND|--))/gm;
const installedPath = /(?<=\/usr\/local\/bin\/|\/man8\/)vault\b/g;

/** The text with this program's name in command lines, paths of installation, and at the beginning of an error. */
export function named(text: string, program: ProgramName = name): string {
  if (program === 'vault') return text;
  return text
    .replace(/^vault(?=: )/gm, program)
    .replace(commandLine, program)
    .replace(installedPath, program);
}

/** Writes to this stream with the name of the program. */
export function nameOutput(stream: NodeJS.WriteStream): void {
  if (name === 'vault') return;
  const write = stream.write.bind(stream) as (chunk: unknown, ...more: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...more: unknown[]) =>
    write(typeof chunk === 'string' ? named(chunk) : chunk, ...more);
}

/**
 * The path to start this program by again under its name: `executable`, or the link to it that `argv0` names, by its
 * path or in a directory of PATH.
 */
export function invokedPath(argv0: string, executable: string, { PATH }: Environment): string {
  if (basename(argv0) === basename(executable)) return executable;
  const candidates = argv0.includes('/')
    ? [resolve(argv0)]
    : (PATH ?? '').split(delimiter).map((directory) => resolve(join(directory, argv0)));
  return candidates.find((path) => leadsTo(path, executable)) ?? executable;
}

function leadsTo(path: string, executable: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return realpathSync(path) === realpathSync(executable);
  } catch {
    // Not there, or not for this user.
    return false;
  }
}
