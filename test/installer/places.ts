/** Runs tests of the client installer in every installed shell and with every installed download tool. */
import { suite, type TestContext, test } from 'node:test';
import { type Shell, shells, type Tool, tools } from '../harness/client/installer.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurn, isWhole, slice } from '../harness/slice.ts';

/** The test options for a shell or a tool. */
type Needs = ReturnType<typeof needs>;

/** A shell and a download tool. With `openssl` the vault must serve HTTPS. */
export type Place = { readonly shell: Shell; readonly tool: Tool };

// The scripts mostly wait for processes, so two concurrent tests keep two cores busy.
const together = { concurrency: 2 };

/** How many places of `inTurnOfShells` and `inTurnOfPlaces` a commit has. */
const atOnce = 2;

/** A shell with the program that it needs. */
type NeededShell = readonly [Shell, Needs];

/** Every shell with the program that it needs. */
function everyShell(): NeededShell[] {
  const named = (Object.keys(shells) as Shell[]).filter((name) => name !== 'sh');
  return named.map((name) => [name, needs(shells[name][0])] as const);
}

/** Every download tool with the program that it needs. */
export function everyTool(): (readonly [Tool, Needs])[] {
  return (Object.keys(tools) as Tool[]).map((name) => [name, needs(tools[name])] as const);
}

/** A test in a shell. */
type InShell = (t: TestContext, shell: Shell) => Promise<void>;

/** The same test in each shell, with curl or another required program. */
export function inEveryShell(title: string, run: InShell, program = 'curl'): void {
  inShells(everyShell(), title, run, program);
}

/** The same test in two shells, in others for another title and another commit; with VAULT_TEST_WHOLE=1 in each. */
export function inTurnOfShells(title: string, run: InShell, program = 'curl'): void {
  inShells(inTurn(everyShell(), atOnce, turnOf(title)), title, run, program);
}

function inShells(all: readonly NeededShell[], title: string, run: InShell, program: string): void {
  suite(title, together, () => {
    for (const [shell, isThere] of all)
      test(`${title}, in ${shell}`, both(isThere, needs(program)), (t) => run(t, shell));
  });
}

/** A test in a shell with a download tool. */
type InPlace = (t: TestContext, place: Place) => Promise<void>;

/**
 * The same test in each shell and with each download tool: in pairs, so that each is there once, and other pairs for
 * another title and another commit. With VAULT_TEST_WHOLE=1 it runs in each shell with each tool.
 */
export function inEveryPlace(title: string, run: InPlace): void {
  inPlaces(everyShell(), title, run);
}

/** The same test in two of these pairs, in others for another title and another commit. */
export function inTurnOfPlaces(title: string, run: InPlace): void {
  inPlaces(inTurn(everyShell(), atOnce, turnOf(title)), title, run);
}

function inPlaces(all: readonly NeededShell[], title: string, run: InPlace): void {
  const toolList = everyTool();
  const turn = turnOf(title);
  suite(title, together, () => {
    for (const [shell, isShellThere] of all) {
      const at = Object.keys(shells).indexOf(shell);
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

/** A number that differs between titles. */
function turnOf(title: string): number {
  return Buffer.from(title).reduce((sum, byte) => sum + byte, 0);
}

/** Skips if either is missing. */
export function both(one: Needs, other: Needs): Needs {
  return one.skip === undefined ? other : one;
}
