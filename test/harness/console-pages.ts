/**
 * Every page of the console, read from its own table, so that no test can forget a new one: assets/console/page-table.tsx
 * is for browsers and cannot be loaded here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** What stands for the parameters of a path, in the vault of the test. */
export type Parameters = Readonly<Record<string, string>>;

const console = new URL('../../assets/console/', import.meta.url);

/** The patterns of all pages that need a session, such as `/certificates/:name`. */
export function pagePatterns(): string[] {
  const source = readFileSync(new URL('page-table.tsx', console), 'utf8');
  const table = /export const pages\b[^=]*= \[\n(.*?)\n\];/s.exec(source)?.[1];
  assert(table, 'page-table.tsx has a table of pages');
  const patterns = [...table.matchAll(/\bpath: '([^']+)'/g)].map(([, path = '']) => path);
  assert.equal(patterns.length, table.match(/\bpage: /g)?.length, 'each page has its path as plain text');
  return patterns;
}

/** The pages without a session, which app.tsx knows. */
export function outsidePaths(): string[] {
  const source = readFileSync(new URL('app.tsx', console), 'utf8');
  const paths = [...source.matchAll(/\bpath === '([^']+)'/g)].map(([, path = '']) => path);
  assert.ok(paths.length > 0, 'app.tsx has pages for those who are not signed in');
  return [...new Set(paths)];
}

/** The tabs of a certificate's page. */
export function certificateTabs(): string[] {
  const source = readFileSync(new URL('pages/certificate.tsx', console), 'utf8');
  const tabs = [...source.matchAll(/\bid: '([a-z]+)'/g)].map(([, id = '']) => id);
  assert.ok(tabs.length > 1, 'certificate.tsx has tabs');
  return tabs;
}

/** The path of a page with these parameters. Throws where a page has one that nobody has thought of. */
export function pathOf(pattern: string, parameters: Parameters): string {
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name];
    assert(value !== undefined, `${pattern}: nothing is known to show there: add :${name} to the tests`);
    return encodeURIComponent(value);
  });
}
