/**
 * The rules of the house, each a function from the facts of the sources to complaints. What they go by stands in
 * house-plan.ts.
 */
import { dirname, join } from 'node:path/posix';
import {
  allowed,
  foldersThatMirrorNothing,
  maxLines,
  pure,
  queryMembers,
  queryText,
  refusedWords,
  storeys,
  testsThatMirrorNothing,
  watched,
} from './house-plan.ts';
import type { SourceFacts } from './source-facts.ts';

export type House = readonly SourceFacts[];

/** What is wrong, or nothing. */
export type Rule = (house: House) => string[];

/** By what it promises. */
export const rules: Readonly<Record<string, Rule>> = {
  'a file imports its own folder or a lower storey, and base/ only node:': importsUpwards,
  'imports make no circles': importCircles,
  'clock, timers, randomness, network and environment are touched only where they come in': touchesOfTheWorld,
  'no exception outlives its need': needlessExceptions,
  'nothing outside db/ knows how things are stored': queriesOutsideDb,
  'no file is too long': filesTooLong,
  'files are called by kebab-case nouns of the field': filesMisnamed,
  'every file begins with a comment that says what it is': filesWithoutComment,
  'tests mirror the sources': testsWithoutSource,
  'nothing is exported by default, or passed on for others': exportsRefused,
};

export function importsUpwards(sources: House): string[] {
  return inside('src', sources).flatMap(({ path, imports }) => {
    const own = storeyOf(path);
    if (own === -1) return [`${path} is on no storey`];
    return imports.flatMap(({ from }) => {
      if (from === '(computed)') return [`${path} imports what nobody can know: the name is computed`];
      if (!from.startsWith('.')) {
        const isRefused = folderOf(path) === 'base' && !from.startsWith('node:');
        return isRefused ? [`${path} imports ${from}, but base/ has no libraries`] : [];
      }
      const target = join(dirname(path), from);
      // The one file outside that is part of the product: it has the version.
      if (target === 'package.json') return [];
      if (!target.startsWith('src/')) return [`${path} imports from outside of src: ${target}`];
      if (folderOf(target) === folderOf(path)) return [];
      const other = storeyOf(target);
      if (other === own) return [`${path} imports from beside: ${target}`];
      return other < own ? [`${path} imports upwards: ${target}`] : [];
    });
  });
}

export function importCircles(sources: House): string[] {
  const edges = new Map(
    inside('src', sources).map(({ path, imports }) => [
      path,
      imports.map(({ from }) => join(dirname(path), from)),
    ]),
  );
  const done = new Set<string>();
  const circles: string[] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    const begin = trail.indexOf(path);
    if (begin !== -1) circles.push([...trail.slice(begin), path].join(' → '));
    if (begin !== -1 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) walk(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) walk(path, []);
  return circles;
}

export function touchesOfTheWorld(sources: House): string[] {
  return inside('src', sources).flatMap((source) => {
    const here = allowed.filter(({ file }) => file === source.path).flatMap(({ uses }) => uses);
    return usesOf(source).flatMap((use) => {
      if (pure.includes(use) || here.some((one) => covers(one, use))) return [];
      const kinds = Object.keys(watched).filter((kind) =>
        watched[kind]?.some((one) => covers(one, use) || includes(use, one)),
      );
      return kinds.map((kind) => `${source.path} touches ${kind}: ${use}`);
    });
  });
}

export function needlessExceptions(sources: House): string[] {
  const touches = allowed.flatMap(({ file, uses }) => {
    const source = sources.find(({ path }) => path === file);
    const needed = source === undefined ? [] : usesOf(source);
    const needless = uses.filter((use) => !needed.some((one) => covers(use, one)));
    return needless.map((use) => `${file} may use ${use}, but does not`);
  });
  const unmirrored = testsThatMirrorNothing.filter(
    ({ file }) => !sources.some(({ path }) => path === file) || isMirrored(file, sources),
  );
  return [...touches, ...unmirrored.map(({ file }) => `${file} may mirror nothing, but is gone or does`)];
}

/** Globals as they are used, and `module name` for what is taken from modules, each once. */
function usesOf({ globals, imports }: SourceFacts): string[] {
  const taken = imports.flatMap(({ from, names }) => names.map((name) => `${from} ${name}`));
  return [...new Set([...globals, ...taken])];
}

/** Whether the pattern means this use: one name, or `.*` and ` *` for whatever it is. */
function covers(pattern: string, use: string): boolean {
  if (pattern === use) return true;
  const root = pattern.slice(0, -2);
  if (pattern.endsWith(' *')) return use.startsWith(`${root} `);
  if (!pattern.endsWith('.*')) return false;
  return use === root || use.startsWith(`${root}.`) || use.startsWith(`new ${root}(`);
}

/** Whether all of a module is taken, of which the pattern means a part. */
function includes(use: string, pattern: string): boolean {
  return use.endsWith(' *') && pattern.startsWith(use.slice(0, -1));
}

export function queriesOutsideDb(sources: House): string[] {
  const others = inside('src', sources).filter(({ path }) => folderOf(path) !== 'db');
  return others.flatMap(({ path, imports, members, strings }) => [
    ...imports
      .filter(({ from }) => /^(better-sqlite3|kysely|node:sqlite)(\/|$)/.test(from))
      .map(({ from }) => `${path} imports ${from}`),
    ...members.filter((name) => queryMembers.includes(name)).map((name) => `${path} builds a query: ${name}`),
    ...strings.flatMap((text) => {
      const sql = queryText.exec(text)?.[0];
      return sql === undefined ? [] : [`${path} holds SQL: ${sql.trim().replace(/\s+/g, ' ')}`];
    }),
  ]);
}

export function filesTooLong(sources: House): string[] {
  const counted = [...inside('src', sources), ...inside('assets', sources)].map(({ path, text }) => ({
    path,
    lines: text.replace(/\n$/, '').split('\n').length,
  }));
  return counted
    .filter(({ lines }) => lines > maxLines)
    .map(({ path, lines }) => `${path} has ${lines} lines`);
}

export function filesMisnamed(sources: House): string[] {
  return sources.flatMap(({ path }) => {
    const names = path.replace(/(\.test)?\.tsx?$/, '').split('/');
    if (!names.every((name) => /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)))
      return [`${path} is not in kebab-case`];
    const words = names.flatMap((name) => name.split('-'));
    return words.filter((word) => refusedWords.includes(word)).map((word) => `${path} is called "${word}"`);
  });
}

export function filesWithoutComment(sources: House): string[] {
  const begin = /^(\/\*\*?|\/\/)[\s*]*[^\s*/]/;
  return sources
    .filter(({ text }) => !begin.test(text))
    .map(({ path }) => `${path} begins without a comment`);
}

export function testsWithoutSource(sources: House): string[] {
  const mirrors = sources.filter(
    ({ path }) =>
      path.startsWith('test/') &&
      !testsThatMirrorNothing.some(({ file }) => file === path) &&
      !foldersThatMirrorNothing.includes(folderOf(path)),
  );
  return mirrors.flatMap(({ path }) => {
    if (!path.endsWith('.test.ts')) return [`${path} is no test: it belongs into test/harness`];
    return isMirrored(path, sources) ? [] : [`${path} tests no file of src or assets`];
  });
}

/** One subject may have several files of tests: a dash after its name says what they are about. */
function isMirrored(test: string, sources: House): boolean {
  const tested = test.replace(/^test\//, '').replace(/\.test\.ts$/, '');
  return [...inside('src', sources), ...inside('assets', sources)].some(({ path }) => {
    const subject = path.replace(/^(src|assets)\//, '').replace(/\.tsx?$/, '');
    return tested === subject || tested.startsWith(`${subject}-`);
  });
}

export function exportsRefused(sources: House): string[] {
  return [...inside('src', sources), ...inside('assets', sources)].flatMap(
    ({ path, hasDefaultExport, passedOn }) => [
      ...(hasDefaultExport ? [`${path} has a default export`] : []),
      ...passedOn.map((name) => `${path} passes on ${name}`),
    ],
  );
}

function inside(folder: 'src' | 'assets', sources: House): SourceFacts[] {
  return sources.filter(({ path }) => path.startsWith(`${folder}/`));
}

/** The folder on a storey: `http` of `src/http/server/server.ts`; `main.ts` stands for itself. */
function folderOf(path: string): string {
  return path.split('/')[1] ?? path;
}

function storeyOf(path: string): number {
  return storeys.findIndex((folders) => folders.some((folder) => folder === folderOf(path)));
}
