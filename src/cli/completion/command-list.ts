/** Lists all commands from the command tree, for shell completions and the manual page. */
import type { CommandDef } from 'citty';
import type { Example, VaultCommand } from '../runtime/command.ts';
import type { OptionSpecs } from '../terminal/arguments.ts';

export type ListedCommand = {
  /** The command words without `vault`; empty for the program itself. */
  readonly words: readonly string[];
  readonly description: string;
  /** Names and descriptions of the subcommands in order; empty for a leaf command. */
  readonly below: readonly (readonly [name: string, description: string])[];
  readonly options: OptionSpecs;
  readonly examples: readonly Example[];
};

/** The command with these words and all commands below it, parents first. */
export async function listCommands(
  command: CommandDef,
  words: readonly string[] = [],
): Promise<ListedCommand[]> {
  const { options = {}, examples = [] } = command as Partial<VaultCommand>;
  const children: ListedCommand[][] = [];
  for (const [name, next] of Object.entries((await resolved(command.subCommands)) ?? {})) {
    children.push(await listCommands((await resolved(next)) as CommandDef, [...words, name]));
  }
  const below = children.flatMap(([child]) =>
    child === undefined ? [] : [[child.words.at(-1) ?? '', child.description] as const],
  );
  const { description = '' } = ((await resolved(command.meta)) ?? {}) as { description?: string };
  return [{ words, description, below, options, examples }, ...children.flat()];
}

/** citty accepts a value, a promise or a function. */
async function resolved(part: unknown): Promise<object | undefined> {
  return (typeof part === 'function' ? part() : part) as Promise<object | undefined>;
}
