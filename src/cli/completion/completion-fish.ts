/** The completion of fish, with what each command and option is for. */
import type { OptionSpec } from '../terminal/arguments.ts';
import type { ListedCommand } from './command-list.ts';

/** The script; a file of ~/.config/fish/completions called vault.fish. */
export function fishCompletion(commands: readonly ListedCommand[]): string {
  const lines = commands.flatMap(({ words, below, options }) => {
    if (below.length > 0) {
      const at = `-n '__vault_exactly ${words.join(' ')}'`;
      return below.map(
        ([name, description]) => `complete -c vault ${at} -a ${name} -d ${quoted(description)}`,
      );
    }
    const at = `-n '__vault_in ${words.join(' ')}'`;
    return Object.entries(options).map(([name, spec]) => `complete -c vault ${at} ${optionLine(name, spec)}`);
  });
  return `# Completion of vault for fish; made by "vault completion fish".
function __vault_exactly
  set -l typed (commandline -opc)
  test "$typed[2..-1]" = "$argv"
end

function __vault_in
  set -l typed (commandline -opc)
  set -l last (math (count $argv) + 1)
  test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv"
end

complete -c vault -f
complete -c vault -l help -d 'show how it is used'
${lines.join('\n')}
`;
}

function optionLine(
  name: string,
  { type, short, positional, values, names, valueHint, description }: OptionSpec,
): string {
  const takes =
    names !== undefined
      ? ` -a '(vault completion --names ${names} 2>/dev/null)'`
      : values !== undefined
        ? ` -a ${quoted(values.join(' '))}`
        : '';
  if (positional === true) return valueHint === 'FILE' ? '-F' : takes.trim() || '-f';
  const letter = short === undefined ? '' : ` -s ${short}`;
  const files = valueHint === 'FILE' || valueHint === 'DIR' ? ' -r -F' : ' -x';
  return `-l ${name}${letter}${type === 'boolean' ? '' : files}${takes} -d ${quoted(description)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
