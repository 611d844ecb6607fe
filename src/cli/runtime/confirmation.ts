/**
 * Asks before a command loses something: on a terminal always, elsewhere `--yes` is needed where nothing brings it
 * back.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { askYes } from '../terminal/prompt.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { stopSignal } from './stop-signal.ts';

export const yesOption = { yes: { type: 'boolean', description: 'do not ask for confirmation' } } as const;

/** What a command is about to lose, as a question, and whether that is permanent. */
export type Loss = { readonly question: string; readonly isPermanent: boolean };

/** Throws OperatorError unless the loss is confirmed, or can be undone and there is no terminal to ask on. */
export async function confirmLoss(
  terminal: Terminal,
  { yes }: { readonly yes: boolean },
  { question, isPermanent }: Loss,
): Promise<void> {
  if (yes) return;
  if (terminal.stdin.isTTY && terminal.stderr.isTTY) {
    if (await askYes(terminal, question, stopSignal())) return;
    throw new OperatorError('not confirmed; nothing was changed', { hint: 'Answer y to confirm.' });
  }
  if (!isPermanent) return;
  throw new OperatorError(`refusing without confirmation: ${question}`, {
    hint: 'Add --yes to confirm. Nothing was changed.',
  });
}
