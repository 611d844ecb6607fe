/** The completion of bash, as one function that needs no library of completions. */
import type { OptionSpec } from '../terminal/arguments.ts';
import type { ListedCommand } from './command-list.ts';

/** The script; `source` it. */
export function bashCompletion(commands: readonly ListedCommand[]): string {
  const words = commands.map(({ words: path, below, options }) => {
    const names = below.length > 0 ? below.map(([name]) => name) : optionNames(options);
    return `    '${path.join(' ')}') known='${[...names, '--help'].join(' ')}' ;;`;
  });
  const values = commands.flatMap(({ words: path, options }) =>
    Object.entries(options).flatMap(([name, spec]) =>
      spellings(name, spec).map((spelling) => `    '${[...path, spelling].join(' ')}') ${action(spec)} ;;`),
    ),
  );
  const paths = commands
    .filter(({ words: path }) => path.length > 0)
    .map(({ words: path }) => `'${path.join(' ')}'`);
  return `# Completion of vault for bash; made by "vault completion bash".
_vault() {
  # bash splits words at = and :, which stand in values.
  local line="\${COMP_LINE:0:COMP_POINT}" current option='' path='' known='' word
  local -a typed
  read -ra typed <<< "$line"
  [[ $line == *[[:space:]] ]] && typed+=('')
  current="\${typed[-1]}"
  for word in "\${typed[@]:1:\${#typed[@]}-2}"; do
    [[ $word == -* ]] && break
    case "\${path:+$path }$word" in
      ${paths.join('|')}) path="\${path:+$path }$word" ;;
      *) break ;;
    esac
  done
  option="\${typed[-2]}"
  if [[ $current == --*=* ]]; then
    option="\${current%%=*}"
    current="\${current#*=}"
  fi
  if [[ $option == -* ]]; then
    case "$path $option" in
${values.join('\n')}
    esac
  fi
  case "$path" in
${words.join('\n')}
  esac
  _vault_reply -W "$known" -- "$current"
}

# Line by line, so that no name becomes a pattern of files.
_vault_reply() {
  local reply
  COMPREPLY=()
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen "$@")
}

_vault_words() {
  local before="\${2%"\${2##*:}"}"
  _vault_reply -W "$1" -- "$2"
  [[ $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("\${COMPREPLY[@]#"$before"}")
}

complete -o filenames -o bashdefault -o default -F _vault vault
`;
}

function spellings(name: string, { positional, short }: OptionSpec): string[] {
  if (positional === true) return [];
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

function optionNames(options: ListedCommand['options']): string[] {
  return Object.entries(options).flatMap(([name, { positional, values = [] }]) =>
    positional === true ? [...values] : [`--${name}`],
  );
}

/** What completes the value of an option; a switch has none, so that options follow. */
function action({ type, values, names, valueHint }: OptionSpec): string {
  if (type === 'boolean') return ':';
  const done = 'return';
  if (values !== undefined) return `_vault_words '${values.join(' ')}' "$current"; ${done}`;
  if (names !== undefined) {
    return `_vault_words "$(vault completion --names ${names} 2>/dev/null)" "$current"; ${done}`;
  }
  if (valueHint === 'FILE') return `_vault_reply -f -- "$current"; ${done}`;
  if (valueHint === 'DIR') return `_vault_reply -d -- "$current"; ${done}`;
  return `COMPREPLY=(); ${done}`;
}
