/** Several real processes that do the same thing at the same moment, to test locks and atomic files. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

/** The address of a source file, for scripts that import it. */
export function sourceUrl(path: string): string {
  return new URL(`../../../src/${path}`, import.meta.url).href;
}

/**
 * Runs `script` (an ES module) in `count` processes and returns their output. All processes wait at a line
 * `await start()` until the last one reaches it; `args` are in `process.argv` from index 1.
 */
export async function race(
  t: Pick<TestContext, 'after'>,
  count: number,
  script: string,
  args: readonly string[],
): Promise<string[]> {
  const start = `async function start() {
    process.stdout.write('ready ');
    for await (const _ of process.stdin);
  }`;
  const processes = Array.from({ length: count }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', `${start}\n${script}`, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill());
    return child;
  });
  await Promise.all(processes.map(({ stdout }) => once(stdout, 'readable')));
  for (const { stdin } of processes) stdin.end();
  const said = await Promise.all(processes.map(({ stdout }) => text(stdout)));
  return said.map((all) => all.replace(/^ready /, ''));
}
