/** The places where the client installer is tried: every shell, and every download tool, that is installed. */
import { suite, type TestContext, test } from 'node:test';
import { type Shell, shells, type Tool, tools } from './client-installer.ts';
import { needs } from './missing-program.ts';

/** What a shell or a tool needs, for the options of a test. */
type Needs = ReturnType<typeof needs>;

/** A shell, and what carries the requests. With `openssl` the vault has to speak HTTPS. */
export type Place = { readonly shell: Shell; readonly tool: Tool };

// The scripts wait for processes much of the time, so two tests at once keep two cores busy.
const together = { concurrency: 2 };

/** Every shell with the program that it needs. */
function everyShell(): (readonly [Shell, Needs])[] {
  const named = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  return named.map((name) => [name, needs(shells[name][0])] as const);
}

/** Every download tool with the program that it needs. */
export function everyTool(): (readonly [Tool, Needs])[] {
  return (Object.keys(tools) as Tool[]).map((name) => [name, needs(tools[name])] as const);
}

/** The same test in each shell, with curl or whatever else it needs. */
export function inEveryShell(
  title: string,
  run: (t: TestContext, shell: Shell) => Promise<void>,
  program = 'curl',
): void {
  suite(title, together, () => {
    for (const [shell, isThere] of everyShell())
      test(`${title}, in ${shell}`, both(isThere, needs(program)), (t) => run(t, shell));
  });
}

/** The same test in each shell with each download tool. */
export function inEveryPlace(title: string, run: (t: TestContext, place: Place) => Promise<void>): void {
  suite(title, together, () => {
    for (const [shell, isShellThere] of everyShell()) {
      for (const [tool, isToolThere] of everyTool()) {
        const name = `${title}, in ${shell} with ${tool}`;
        test(name, both(isShellThere, isToolThere), (t) => run(t, { shell, tool }));
      }
    }
  });
}

function both(one: Needs, other: Needs): Needs {
  return one.skip === undefined ? other : one;
}
