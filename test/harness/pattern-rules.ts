/**
 * No input may make a regular expression take more than linear time. recheck proves it for each expression with an
 * automaton; an expression that it cannot judge (back-references, look-around) counts as too slow.
 */
import type { House } from './house-rules.ts';

// Of its programs the one in JavaScript: it needs no other process, and says the same on every machine.
process.env.RECHECK_SYNC_BACKEND = 'pure';
const { checkSync } = await import('recheck');

/** `RegExp` objects built from strings, which no tool can check, and why they contain no outside input. */
export const constructed: Readonly<Record<string, string>> = {
  'src/domain/audit/audit-checkpoint.ts': 'a constant that is too long for one line',
};

/** Expressions that take superlinear time for some text. */
export function slowPatterns(house: House): string[] {
  const paths = new Map<string, string[]>();
  for (const { path, patterns } of house) {
    for (const pattern of patterns) paths.set(pattern, [...(paths.get(pattern) ?? []), path]);
  }
  return [...paths].flatMap(([pattern, where]) => {
    const complaint = complaintAbout(pattern);
    return complaint === undefined ? [] : where.map((path) => `${path}: ${pattern} ${complaint}`);
  });
}

/** Expressions that are put together while the program runs. */
export function constructedPatterns(house: House): string[] {
  return house.flatMap(({ path, globals }) =>
    globals.some((name) => /\bRegExp\b/.test(name)) && constructed[path] === undefined
      ? [`${path} constructs a regular expression: write it as a literal`]
      : [],
  );
}

/**
 * Patterns of a shell script with a back-reference, the one thing that makes the matchers of grep, sed and awk slow. In the
 * replacement of sed, right behind its delimiter or a blank, it is none.
 */
export function shellBackReferences(script: string): string[] {
  return script.split('\n').filter((line) => /[^/|, ]\\[1-9]/.test(line.replaceAll('\\\\', '')));
}

function complaintAbout(pattern: string): string | undefined {
  const end = pattern.lastIndexOf('/');
  const result = checkSync(pattern.slice(1, end), pattern.slice(end + 1), {
    checker: 'automaton',
    // A busy machine must not change the result.
    timeout: null,
  });
  if (result.status === 'safe') return undefined;
  if (result.status === 'unknown') return `cannot be judged: ${JSON.stringify(result.error)}`;
  return `takes ${result.complexity.summary} time, for example for ${result.attack.pattern}`;
}
