/** Runs tests of the client installer in every installed shell and with every installed download tool. */
import { suite, type TestContext, test } from 'node:test';
import { type Shell, shells, type Tool, tools } from '../harness/client/installer.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { isWhole, slice } from '../harness/slice.ts';

/** The test options for a shell or a tool. */
type Needs = ReturnType<typeof needs>;

/** A shell and a download tool. With `openssl` the vault must serve HTTPS. */
export type Place = { readonly shell: Shell; readonly tool: Tool };

// The scripts mostly wait for processes, so two concurrent tests keep two cores busy.
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

/** The same test in each shell, with curl or another required program. */
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

/**
 * The same test in each shell and with each download tool: in pairs, so that each is there once, and other pairs for another
 * title and another commit. With VAULT_TEST_WHOLE=1 it runs in each shell with each tool.
 */
export function inEveryPlace(title: string, run: (t: TestContext, place: Place) => Promise<void>): void {
  const toolList = everyTool();
  const turn = Buffer.from(title).reduce((sum, byte) => sum + byte, 0);
  suite(title, together, () => {
    for (const [at, [shell, isShellThere]] of everyShell().entries()) {
      for (const [tool, isToolThere] of toolList) {
        if (!isWhole && toolList[(at + turn + slice) % toolList.length]?.[0] !== tool) continue;
        const name = `${title}, in ${shell} with ${tool}`;
        test(name, both(isShellThere, isToolThere), (t) => {
          if (!isWhole) t.diagnostic('VAULT_TEST_WHOLE=1 runs this in each shell with each tool');
          return run(t, { shell, tool });
        });
      }
    }
  });
}

function both(one: Needs, other: Needs): Needs {
  return one.skip === undefined ? other : one;
}
