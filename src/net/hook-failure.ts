/** Describes how a hook program failed, in one sentence without the secrets that it received. */

import { describeSystemError } from '../base/system-error.ts';
import type { HookEnd, HookRun } from './hook-process.ts';
import { withoutPartialStart, withoutSecrets } from './without-secrets.ts';

/**
 * What went wrong, as a sentence; undefined if the program succeeded. `hidden` lists values that must not appear in it.
 */
export function hookFailure(
  { program, timeoutMs }: Pick<HookRun, 'program' | 'timeoutMs'>,
  end: HookEnd,
  hidden: readonly string[],
): string | undefined {
  if (!end.started && end.untrusted !== undefined) return end.untrusted;
  if (!end.started)
    return `failed to start ${program}: ${startFailures[end.code] ?? describeSystemError({ code: end.code, message: end.code })}`;
  const said = outputEnd(end, hidden);
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

const maxOutputLength = 500;

/** The end of stderr, or of stdout if stderr is empty, on one line and without the hidden values. */
function outputEnd(
  { stdout, stderr }: { stdout: string; stderr: string },
  secrets: readonly string[],
): string {
  const output = stderr.trim() === '' ? stdout : stderr;
  const isCut = output.length > maxOutputLength;
  const hidden = withoutSecrets(output, secrets);
  const shown = isCut ? withoutPartialStart(hidden) : hidden;
  const line = shown.replace(/[\s\p{C}]+/gu, ' ').trim();
  if (line === '') return ', without any output';
  return `: ${isCut ? `…${line.slice(-maxOutputLength)}` : line}`;
}
