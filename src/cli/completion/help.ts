/** The output of `--help`: citty's usage, followed by examples. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { type CommandDef, renderUsage } from 'citty';
import type { VaultCommand } from '../runtime/command.ts';

/** The help of a command or group below `root`, in color if the stream is a terminal. */
export async function helpText(
  command: CommandDef,
  root: CommandDef,
  { isTTY }: Pick<NodeJS.WriteStream, 'isTTY'>,
): Promise<string> {
  // The name of a command includes its group, so the parent is always the program itself.
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
