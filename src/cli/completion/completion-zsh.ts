/** The completion of zsh, with what each command and option is for. */
import type { OptionSpec } from '../terminal/arguments.ts';
import type { ListedCommand } from './command-list.ts';

/** The script; a file of fpath called _vault, or `source` it after compinit. */
export function zshCompletion(commands: readonly ListedCommand[]): string {
  const paths = commands.filter(({ words }) => words.length > 0).map(({ words }) => `'${words.join(' ')}'`);
  const values = commands.flatMap(({ words, options }) =>
    Object.entries(options)
      .filter(([, { positional }]) => positional !== true)
      .map(([name, spec]) => {
        const long = `'${[...words, `--${name}`].join(' ')}'`;
        const pattern =
          spec.short === undefined ? long : `${long}|'${[...words, `-${spec.short}`].join(' ')}'`;
        return `      ${pattern}) ${action(spec)} ;;`;
      }),
  );
  const known = commands.map(({ words, below, options }) => {
    const takesFile = Object.values(options).some(
      ({ positional, valueHint }) => positional === true && valueHint === 'FILE',
    );
    const items =
      below.length > 0
        ? below.map(([name, description]) => item(name, description))
        : Object.entries(options).flatMap(([name, { positional, values: words = [], description }]) =>
            positional === true ? words.map((word) => item(word, '')) : [item(`--${name}`, description)],
          );
    return `    '${words.join(' ')}') known=(${items.join(' ')})${takesFile ? ' files=yes' : ''} ;;`;
  });
  return `#compdef vault
# Completion of vault for zsh; made by "vault completion zsh".
_vault() {
  local command_path='' option='' files='' word
  local -a known names
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${command_path:+$command_path }$word" in
      ${paths.join('|')}) command_path="\${command_path:+$command_path }$word" ;;
      *) break ;;
    esac
  done
  option="\${words[CURRENT-1]}"
  if [[ $PREFIX == --*=* ]]; then
    option="\${PREFIX%%=*}"
    compset -P '--*='
  fi
  if [[ $option == -* ]]; then
    case "$command_path $option" in
${values.join('\n')}
    esac
  fi
  case "$command_path" in
${known.join('\n')}
  esac
  _describe -o vault known
  [[ -z $files || $PREFIX == -* ]] || _files
}

if [[ $funcstack[1] == _vault ]]; then _vault "$@"; else compdef _vault vault; fi
`;
}

/** `name:description` as a word of the shell. */
function item(name: string, description: string): string {
  const text = `${name.replaceAll(':', '\\:')}${description === '' ? '' : `:${description}`}`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function action({ type, values, names, valueHint }: OptionSpec): string {
  if (type === 'boolean') return ':';
  if (values !== undefined) return `compadd -- ${values.join(' ')}; return`;
  if (names !== undefined) {
    return `names=("\${(@f)$(vault completion --names ${names} 2>/dev/null)}"); compadd -- $names; return`;
  }
  if (valueHint === 'FILE') return '_files; return';
  return valueHint === 'DIR' ? '_files -/; return' : 'return';
}
