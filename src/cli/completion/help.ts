/** What `--help` shows: the usage as citty knows it, and examples below. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { type CommandDef, renderUsage } from 'citty';
import type { VaultCommand } from '../runtime/command.ts';

/** The help of a command or a group below `root`, with colours where the stream is a terminal. */
export async function helpText(
  command: CommandDef,
  root: CommandDef,
  { isTTY }: Pick<NodeJS.WriteStream, 'isTTY'>,
): Promise<string> {
  // A command's name holds its group's, so that what comes before it is always just the program.
  const usage = await renderUsage(command, command === root ? undefined : root);
  const text = `${usage.trimEnd()}\n${examplesOf(command)}`;
  return isTTY ? text : stripVTControlCharacters(text);
}

function examplesOf(command: CommandDef): string {
  const { examples = [] } = command as Partial<VaultCommand>;
  if (examples.length === 0) return '';
  const force = { validateStream: false };
  const title = styleText(['bold', 'underline'], 'EXAMPLES', force);
  const shown = examples.map(({ does, line }) => `\n  ${does}:\n    ${styleText('cyan', line, force)}\n`);
  return `\n${title}\n${shown.join('')}`;
}
