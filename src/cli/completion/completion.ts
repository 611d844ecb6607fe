/** `vault completion`: a script by which a shell knows commands, options and values, and asks the vault for its names. */
import type { CommandDef } from 'citty';
import { type NameKind, nameKinds, namesInVault } from '../../domain/presence/known-names.ts';
import { command, type VaultCommand } from '../runtime/command.ts';
import { readSettings } from '../settings/settings.ts';
import { Misuse } from '../terminal/misuse.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';
import { listCommands } from './command-list.ts';
import { bashCompletion } from './completion-bash.ts';
import { fishCompletion } from './completion-fish.ts';
import { zshCompletion } from './completion-zsh.ts';

const shells = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

type Shell = keyof typeof shells;

/** The command, for the tree below `root`. */
export function completionCommand(root: () => CommandDef): VaultCommand {
  return command({
    name: 'completion',
    description: 'print a script that lets a shell complete commands, options and names',
    examples: [
      { does: 'For bash, in ~/.bashrc', line: 'vault completion bash > ~/.vault-completion.bash' },
      { does: 'For zsh, in a directory of fpath', line: 'vault completion zsh > ~/.vault-completion.zsh' },
      { does: 'For fish', line: 'vault completion fish > ~/.vault-completion.fish' },
    ],
    options: {
      shell: {
        type: 'string',
        positional: true,
        valueHint: 'SHELL',
        description: Object.keys(shells).join(', '),
        values: Object.keys(shells),
      },
      names: {
        type: 'string',
        valueHint: 'KIND',
        description: `only print the names that the vault has, as the script does: ${nameKinds.join(', ')}`,
        values: nameKinds,
      },
    },
    run: async (args, terminal) => {
      if (args.names !== undefined) {
        const kind = nameKinds.find((known) => known === args.names);
        if (kind === undefined) {
          throw new Misuse(`--names ${args.names} is not a kind of names`, `Use ${nameKinds.join(', ')}.`);
        }
        const names = await namesOf(kind, args, terminal.environment);
        terminal.stdout.write(names.map((name) => `${name}\n`).join(''));
        return;
      }
      if (args.shell === undefined || !Object.hasOwn(shells, args.shell)) {
        throw new Misuse('which shell?', `Write one of ${Object.keys(shells).join(', ')}.`);
      }
      terminal.stdout.write(shells[args.shell as Shell](await listCommands(root())));
    },
  });
}

/** None where there is no vault, or none of this user's: whoever presses a key wants no error. */
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
    // Every other command says what is wrong.
    return [];
  }
}
