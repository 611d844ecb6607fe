/** Every command of the executable with its options, found by walking the tree that the command line itself walks. */
import type { ArgsDef, CommandDef } from 'citty';
import { root } from '../../src/cli/run.ts';

export type KnownCommand = {
  /** As it is typed, without the program's name. */
  readonly words: readonly string[];
  readonly options: ArgsDef;
};

/** All commands that do something themselves, in their order. */
export async function allCommands(
  command: CommandDef = root,
  words: readonly string[] = [],
): Promise<KnownCommand[]> {
  const below = (await resolved(command.subCommands)) as Record<string, unknown> | undefined;
  if (below === undefined) return [{ words, options: ((await resolved(command.args)) ?? {}) as ArgsDef }];
  const all: KnownCommand[] = [];
  for (const [name, next] of Object.entries(below)) {
    all.push(...(await allCommands((await resolved(next)) as CommandDef, [...words, name])));
  }
  return all;
}

/** citty takes each part as a value, a promise or a function. */
async function resolved(part: unknown): Promise<unknown> {
  return typeof part === 'function' ? part() : part;
}
