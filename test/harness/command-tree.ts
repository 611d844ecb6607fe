/** Lists every command of the executable with its options, from the command tree itself. */
import type { ArgsDef, CommandDef } from 'citty';
import { root } from '../../src/cli/commands/run.ts';
import type { Example, VaultCommand } from '../../src/cli/runtime/command.ts';
import type { OptionSpecs } from '../../src/cli/terminal/arguments.ts';

export type KnownCommand = {
  /** The command without the name of the program. */
  readonly words: readonly string[];
  readonly options: ArgsDef;
  /** The options of the command. */
  readonly specs: OptionSpecs;
  readonly examples: readonly Example[];
};

/** All commands that have an action, in order. */
export async function allCommands(
  command: CommandDef = root,
  words: readonly string[] = [],
): Promise<KnownCommand[]> {
  const below = (await resolved(command.subCommands)) as Record<string, unknown> | undefined;
  if (below === undefined) {
    const { options: specs, examples } = command as VaultCommand;
    return [{ words, options: ((await resolved(command.args)) ?? {}) as ArgsDef, specs, examples }];
  }
  const all: KnownCommand[] = [];
  for (const [name, next] of Object.entries(below)) {
    all.push(...(await allCommands((await resolved(next)) as CommandDef, [...words, name])));
  }
  return all;
}

/** In citty each part may be a value, a promise or a function. */
async function resolved(part: unknown): Promise<unknown> {
  return typeof part === 'function' ? part() : part;
}
