/** `vault completion`: prints a shell completion script, and the names of objects for it. */
import type { CommandDef } from 'citty';
import { type NameKind, nameKinds, namesInVault } from '../../domain/instance/vault-database.ts';
import { command, type VaultCommand } from '../runtime/command.ts';
import { named, programName } from '../runtime/program-name.ts';
import { readSettings } from '../settings/settings.ts';
import { Misuse } from '../terminal/misuse.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';
import { listCommands } from './command-list.ts';
import { bashCompletion } from './completion-bash.ts';
import { fishCompletion } from './completion-fish.ts';
import { zshCompletion } from './completion-zsh.ts';

const shells = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

type Shell = keyof typeof shells;

/** The command, for the command tree of `root`. */
export function completionCommand(root: () => CommandDef): VaultCommand {
  return command({
    name: 'completion',
    description: 'Print a shell completion script',
    examples: [
      {
        does: 'For bash; source the file in ~/.bashrc',
        line: 'vault completion bash > ~/.vault-completion.bash',
      },
      {
        does: 'For zsh; source the file in ~/.zshrc after compinit',
        line: 'vault completion zsh > ~/.vault-completion.zsh',
      },
      {
        does: 'For fish; source the file in ~/.config/fish/config.fish',
        line: 'vault completion fish > ~/.vault-completion.fish',
      },
    ],
    options: {
      shell: {
        type: 'string',
        positional: true,
        valueHint: 'SHELL',
        description: `the shell: ${Object.keys(shells).join(', ')}`,
        values: Object.keys(shells),
      },
      names: {
        type: 'string',
        valueHint: 'KIND',
        description: `print the names of these objects, for the script: ${nameKinds.join(', ')}`,
        values: nameKinds,
      },
    },
    run: async (args, terminal) => {
      if (args.names !== undefined) {
        const kind = nameKinds.find((known) => known === args.names);
        if (kind === undefined) {
          throw new Misuse(`--names: unknown kind "${args.names}"`, `Use one of ${nameKinds.join(', ')}.`);
        }
        const names = await namesOf(kind, args, terminal.environment);
        terminal.stdout.write(names.map((name) => `${name}\n`).join(''));
        return;
      }
      if (args.shell === undefined || !Object.hasOwn(shells, args.shell)) {
        throw new Misuse(
          args.shell === undefined ? 'SHELL is missing' : `unknown shell "${args.shell}"`,
          `Use one of ${Object.keys(shells).join(', ')}.`,
        );
      }
      terminal.stdout.write(underOwnName(shells[args.shell as Shell](await listCommands(root()))));
    },
  });
}

/**
 * The script for the program under its name; its functions are renamed, because a script for another vault may be
 * loaded, too.
 */
function underOwnName(script: string): string {
  const name = programName();
  if (name === 'vault') return script;
  return named(script)
    .replaceAll(/(?<=complete -c |#compdef |completion for |\b_vault )vault\b/g, name)
    .replaceAll(/\b(_{1,2})vault(?![a-z-])/g, `$1${name.replace('-', '_')}`);
}

/** The names; none if the vault cannot be read, because completion must not print errors. */
async function namesOf(
  kind: NameKind,
  flags: Parameters<typeof readSettings>[0],
  environment: Parameters<typeof readSettings>[1],
): Promise<string[]> {
  try {
    const settings = await readSettings(flags, environment);
    refuseExposedVault(settings, 'refuse');
    return namesInVault(settings.dataDir, kind);
  } catch {
    // Every other command reports the error.
    return [];
  }
}
