/**
 * No input may make a regular expression take more than linear time. recheck proves it for each expression with an
 * automaton; an expression that it cannot judge (back-references, look-around) counts as too slow.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from '@swc/core';

// Of its programs the one in JavaScript: it needs no other process, and says the same on every machine.
process.env.RECHECK_SYNC_BACKEND = 'pure';
const { checkSync } = await import('recheck');

/** `RegExp` objects built from strings, which no tool can check, and why they contain no outside input. */
export const constructed: Readonly<Record<string, string>> = {
  'src/domain/audit/audit-checkpoint.ts': 'a constant that is too long for one line',
};

export type PatternFacts = {
  readonly path: string;
  /** Regular expressions as written, with their flags. */
  readonly patterns: readonly { readonly source: string; readonly flags: string }[];
  /** Whether the file names `RegExp` as a value. */
  readonly constructs: boolean;
};

/** Reads TypeScript. Throws where it is none. */
export function readPatterns(path: string, text: string): PatternFacts {
  const patterns: { source: string; flags: string }[] = [];
  let constructs = false;
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, pattern, flags, value } = node as Record<string, unknown>;
    if (type === 'RegExpLiteral') patterns.push({ source: String(pattern), flags: String(flags ?? '') });
    if (type === 'Identifier' && value === 'RegExp') constructs = true;
    // A type reference names RegExp too, and constructs nothing.
    const children = Object.entries(node).filter(([key]) => type !== 'TsTypeReference' || key !== 'typeName');
    for (const [, child] of children) visit(child);
  };
  visit(parseSync(text, { syntax: 'typescript', tsx: path.endsWith('.tsx'), target: 'es2024' }));
  return { path, patterns, constructs };
}

/** Expressions that take superlinear time for some text. */
export function slowPatterns(files: readonly PatternFacts[]): string[] {
  const paths = new Map<string, string[]>();
  for (const { path, patterns } of files) {
    for (const { source, flags } of patterns) {
      const pattern = `/${source}/${flags}`;
      paths.set(pattern, [...(paths.get(pattern) ?? []), path]);
    }
  }
  const complaints = [...paths].flatMap(([pattern, where]) => {
    const complaint = complaintAbout(pattern);
    return complaint === undefined ? [] : where.map((path) => `${path}: ${pattern} ${complaint}`);
  });
  keepVerdicts();
  return complaints;
}

/** Expressions that are put together while the program runs. */
export function constructedPatterns(files: readonly PatternFacts[]): string[] {
  return files.flatMap(({ path, constructs }) =>
    constructs && constructed[path] === undefined
      ? [`${path} constructs a regular expression: write it as a literal`]
      : [],
  );
}

/**
 * Patterns of a shell script with a back-reference, the one thing that makes the matchers of grep, sed and awk slow. In
 * the replacement of sed, right behind its delimiter or a blank, it is none.
 */
export function shellBackReferences(script: string): string[] {
  return script.split('\n').filter((line) => /[^/|, ]\\[1-9]/.test(line.replaceAll('\\\\', '')));
}

/** The complaints about patterns that were judged before, by the version of recheck: a verdict never changes. */
const verdictsPath = join(import.meta.dirname, '..', 'node_modules', '.cache', 'patterns.json');
const recheckVersion: string = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', 'node_modules', 'recheck', 'package.json'), 'utf8'),
).version;
const verdicts = knownVerdicts();

function knownVerdicts(): Map<string, string> {
  try {
    const { version, complaints } = JSON.parse(readFileSync(verdictsPath, 'utf8'));
    return new Map(version === recheckVersion ? complaints : []);
  } catch {
    // There is none yet, or another process is writing it.
    return new Map();
  }
}

function keepVerdicts(): void {
  mkdirSync(dirname(verdictsPath), { recursive: true });
  writeFileSync(verdictsPath, JSON.stringify({ version: recheckVersion, complaints: [...verdicts] }));
}

function complaintAbout(pattern: string): string | undefined {
  const complaint = verdicts.get(pattern) ?? judged(pattern) ?? '';
  verdicts.set(pattern, complaint);
  return complaint || undefined;
}

function judged(pattern: string): string | undefined {
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
