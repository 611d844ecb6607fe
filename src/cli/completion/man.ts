/** `vault man`: prints the manual page, from the same definitions as the help. */
import type { CommandDef } from 'citty';
import { formatTimestamp } from '../../base/timestamp.ts';
import { serverOptions } from '../remote/server-choice.ts';
import { commandWithoutVault, type VaultCommand } from '../runtime/command.ts';
import { named, programName } from '../runtime/program-name.ts';
import { commonOptions } from '../settings/settings.ts';
import type { OptionSpec } from '../terminal/arguments.ts';
import { type ListedCommand, listCommands } from './command-list.ts';

/** The command, for the command tree of `root`. */
export function manCommand(root: () => CommandDef): VaultCommand {
  return commandWithoutVault({
    name: 'man',
    description: 'Print the manual page',
    examples: [
      { does: 'Read the manual page', line: 'vault man | man -l -' },
      { does: 'Install the manual page', line: 'vault man > /usr/local/share/man/man8/vault.8' },
    ],
    options: {},
    run: async (_, { stdout, version, world }) => {
      const day = formatTimestamp(world.now()).slice(0, 10);
      const page = manualPage(await listCommands(root()), day, version);
      // roff would print a plain hyphen as a dash.
      stdout.write(named(page).replaceAll('certificate-vault', 'certificate\\-vault'));
    },
  });
}

/** The page in roff with man(7) macros. */
function manualPage(commands: readonly ListedCommand[], day: string, version: string): string {
  const name = programName();
  const [program, ...rest] = commands;
  const acting = rest.filter(({ below }) => below.length === 0);
  return `${[
    `.TH ${name.toUpperCase()} 8 ${day} "${name} ${version}"`,
    '.SH NAME',
    `${name} \\- ${escaped((program?.description ?? '').replace(/^./, (letter) => letter.toLowerCase()))}`,
    '.SH SYNOPSIS',
    `.B ${name}`,
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    'Commands work directly on the vault in the data directory, even while the server runs.',
    'The exit code is 0 for success, 1 if the command failed or was refused, and 2 for invalid usage.',
    'Every command takes',
    '.B \\-\\-help',
    'and, if it works on a vault, these options:',
    ...Object.entries(commonOptions).flatMap(([name, spec]) => option(name, spec)),
    '.PP',
    'Before the command, these options choose a vault at a server:',
    ...Object.entries(serverOptions).flatMap(([name, spec]) => option(name, spec)),
    '.SH COMMANDS',
    ...acting.flatMap(commandSection),
    '.SH FILES',
    '.TP',
    '.I vault.yaml',
    'in the data directory: the settings of the server, one',
    '.I name: value',
    'on each line.',
  ].join('\n')}\n`;
}

function commandSection({ words, description, options, examples }: ListedCommand): string[] {
  const own = Object.entries(options).filter(([name]) => !Object.hasOwn(commonOptions, name));
  return [
    `.SS vault ${escaped(words.join(' '))}`,
    sentence(description),
    ...own.flatMap(([name, spec]) => option(name, spec)),
    ...examples.flatMap(({ does, line }) => [
      '.PP',
      `${escaped(does)}:`,
      '.PP',
      '.RS 4',
      '.EX',
      escaped(line),
      '.EE',
      '.RE',
    ]),
  ];
}

function option(
  name: string,
  { valueHint, type, positional, short, required, multiple, description }: OptionSpec,
): string[] {
  const letter = short === undefined ? '' : `\\-${short}\\fR, \\fB`;
  const value = type === 'boolean' ? '' : `\\fR=\\fI${escaped(valueHint ?? 'VALUE')}`;
  const notes = [required === true ? 'required' : '', multiple === true ? 'repeatable' : ''].filter(Boolean);
  return [
    '.TP',
    positional === true
      ? `\\fI${valueHint ?? name.toUpperCase()}\\fR`
      : `\\fB${letter}\\-\\-${escaped(name)}${value}\\fR`,
    sentence(`${description}${notes.length === 0 ? '' : `; ${notes.join(', ')}`}`),
  ];
}

function sentence(text: string): string {
  return escaped(
    `${text.replace(/^[a-z]+ /, (word) => word.charAt(0).toUpperCase() + word.slice(1))}.`.replace(
      /\.\.$/,
      '.',
    ),
  );
}

/** Escapes text for roff: backslashes, hyphens, quotes and a leading dot. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replace(/^\./, '\\&.');
}
