/** All commands with what is known of them, gathered from the tree that the command line walks: for completions and the manual. */
import type { CommandDef } from 'citty';
import type { Example, VaultCommand } from '../runtime/command.ts';
import type { OptionSpecs } from '../terminal/arguments.ts';

export type ListedCommand = {
  /** As it is typed, without the program's name; none for the program itself. */
  readonly words: readonly string[];
  readonly description: string;
  /** Names and descriptions of what is below, in their order; none for a command that does something. */
  readonly below: readonly (readonly [name: string, description: string])[];
  readonly options: OptionSpecs;
  readonly examples: readonly Example[];
};

/** The command of these words and all below it, groups before what they hold. */
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

/** citty takes each part as a value, a promise or a function. */
async function resolved(part: unknown): Promise<object | undefined> {
  return (typeof part === 'function' ? part() : part) as Promise<object | undefined>;
}
