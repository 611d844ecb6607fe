/**
 * The output of `--help`: the commands in groups for the program itself, otherwise citty's usage followed by examples.
 */
import { stripVTControlCharacters, styleText } from 'node:util';
import { type CommandDef, renderUsage } from 'citty';
import { serverOptions, serverVariables } from '../remote/server-choice.ts';
import type { VaultCommand } from '../runtime/command.ts';
import { named } from '../runtime/program-name.ts';
import { commonOptions } from '../settings/settings.ts';
import type { OptionSpec } from '../terminal/arguments.ts';
import { listCommands } from './command-list.ts';

/** What people look for first comes first. Every command is in one group. */
const groups: Readonly<Record<string, readonly string[]>> = {
  serve: ['serve', 'demo', 'systemd-unit', 'doctor'],
  certificates: ['certificate', 'inspect', 'renewals', 'replace', 'fleet', 'endpoint', 'deploy-target'],
  access: ['api-key', 'enrollment', 'acme-client', 'admin', 'oidc', 'login', 'logout'],
  issuers: ['issuer', 'ca', 'acme-account', 'dns-provider'],
  operations: ['notification', 'audit', 'backup', 'restore', 'database', 'master-key', 'apply', 'export'],
  about: ['completion', 'man', 'licenses', 'version'],
};

/** The help of a command or group below `root`, in color if the stream is a terminal. */
export async function helpText(
  command: CommandDef,
  root: CommandDef,
  stream: Pick<NodeJS.WriteStream, 'isTTY'>,
): Promise<string> {
  if (command === root) return shown(await programHelp(root), stream);
  const { args = {} } = command as { args?: Record<string, unknown> };
  const own = Object.entries(args).filter(([name]) => !Object.hasOwn(commonOptions, name));
  const usage = await renderUsage({ ...command, args: Object.fromEntries(own) } as CommandDef, root);
  const hasCommon = own.length < Object.keys(args).length;
  const more = hasCommon ? '\nFor the data directory and the master key, see "vault help options".\n' : '';
  return shown(`${usage.trimEnd()}\n${examplesOf(command)}${more}`, stream);
}

/** The options of every command that works on a vault. */
export function optionsHelp(stream: Pick<NodeJS.WriteStream, 'isTTY'>): string {
  const rowsOf = (options: Readonly<Record<string, OptionSpec>>) =>
    Object.entries(options).map(
      ([name, { valueHint = 'VALUE', description }]) => [`--${name}=<${valueHint}>`, description] as const,
    );
  return shown(
    `Options of every command that works on a vault\n${section('options', rowsOf(commonOptions))}\n` +
      'vault.yaml and the environment (CERTVAULT_DATA_DIR, …) can set them, too.\n' +
      `${section('before the command', rowsOf(serverOptions))}\n` +
      `The environment can set them, too: ${Object.values(serverVariables).join(', ')}. "vault login" stores the key.\n`,
    stream,
  );
}

async function programHelp(root: CommandDef): Promise<string> {
  const [program] = await listCommands(root);
  const descriptions = new Map(program?.below);
  const sections = Object.entries(groups).map(([title, names]) =>
    section(
      title,
      names.map((name) => [name, descriptions.get(name) ?? '']),
    ),
  );
  return (
    `${program?.description}\n\n${title('usage')} vault COMMAND [OPTIONS]\n${sections.join('')}\n` +
    'For a command, see "vault help COMMAND"; for the options of every command, "vault help options".\n'
  );
}

function section(name: string, rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([term]) => term.length));
  const lines = rows.map(
    ([term, text]) => `  ${styleText('cyan', term, anyStream)}${' '.repeat(width - term.length)}  ${text}\n`,
  );
  return `\n${title(name)}\n${lines.join('')}`;
}

const anyStream = { validateStream: false } as const;

function title(text: string): string {
  return styleText(['bold', 'underline'], text.toUpperCase(), anyStream);
}

function shown(text: string, { isTTY }: Pick<NodeJS.WriteStream, 'isTTY'>): string {
  const ours = named(text);
  return isTTY ? ours : withoutTrailingSpaces(stripVTControlCharacters(ours));
}

// citty ends the usage line of a command without options with a space, and pads every description.
function withoutTrailingSpaces(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function examplesOf(command: CommandDef): string {
  const { examples = [] } = command as Partial<VaultCommand>;
  if (examples.length === 0) return '';
  const lines = examples.map(({ does, line }) => `\n  ${does}:\n    ${styleText('cyan', line, anyStream)}\n`);
  return `\n${title('examples')}\n${lines.join('')}`;
}
