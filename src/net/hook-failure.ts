/** How the end of an operator's program is told to people: one sentence, without the values that it was given in secret. */
import type { HookEnd, HookRun } from './hook-process.ts';

/** What went wrong, as a sentence, or nothing. `hidden` are values that must not be said again. */
export function hookFailure(
  { program, timeoutMs }: Pick<HookRun, 'program' | 'timeoutMs'>,
  end: HookEnd,
  hidden: readonly string[],
): string | undefined {
  if (!end.started) return `failed to start ${program}: ${startFailures[end.code] ?? end.code}`;
  const said = lastWords(end, hidden);
  if (end.stopped === 'timeout') return `${program} was killed after ${timeoutMs / 1000} s (timeout)${said}`;
  if (end.stopped === 'aborted') return `${program} was killed because the attempt was canceled${said}`;
  if (end.killedBy !== undefined) return `${program} was killed by ${end.killedBy}${said}`;
  return end.exitCode === 0 ? undefined : `${program} failed with exit code ${end.exitCode}${said}`;
}

const startFailures: Readonly<Record<string, string>> = {
  ENOENT:
    'no such file, or the interpreter in its first line does not exist (write arguments as a list: [PATH, ARGUMENT])',
  EACCES: 'permission denied (is it executable? Try: chmod +x)',
};

const longestWords = 500;
/** Shorter values are no secrets, and would be found in ordinary words. */
const shortestSecret = 4;

/** The end of stderr, or else of stdout, in one line, without the values that were configured. */
function lastWords(
  { stdout, stderr }: { stdout: string; stderr: string },
  configured: readonly string[],
): string {
  const hidden = configured
    .filter((value) => value.length >= shortestSecret)
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, value) => text.replaceAll(value, '[secret]'), stderr.trim() || stdout.trim());
  const line = hidden.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line === '') return ', without any output';
  return `: ${line.length > longestWords ? `…${line.slice(-longestWords)}` : line}`;
}
