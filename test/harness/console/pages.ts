/**
 * Every page of the console, read from the source of assets/console/page-table.tsx, so that tests cover new pages. The
 * table itself runs only in browsers and cannot be imported here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** Values for the parameters of a path. */
export type Parameters = Readonly<Record<string, string>>;

const console = new URL('../../../assets/console/', import.meta.url);

/** The patterns of all pages that need a session, such as `/certificates/:name`. */
export function pagePatterns(): string[] {
  const source = readFileSync(new URL('page-table.tsx', console), 'utf8');
  const table = /export const pages\b[^=]*= \[\n(.*?)\n\];/s.exec(source)?.[1];
  assert(table, 'no table of pages in page-table.tsx');
  const patterns = [...table.matchAll(/\bpath: '([^']+)'/g)].map(([, path = '']) => path);
  assert.equal(patterns.length, table.match(/\bpage: /g)?.length, 'a page without a literal path');
  return patterns;
}

/** The pages without a session, read from app.tsx. */
export function outsidePaths(): string[] {
  const source = readFileSync(new URL('app.tsx', console), 'utf8');
  const paths = [...source.matchAll(/\bpath === '([^']+)'/g)].map(([, path = '']) => path);
  assert.ok(paths.length > 0, 'no pages without a session in app.tsx');
  return [...new Set(paths)];
}

/** The tabs of a certificate's page. */
export function certificateTabs(): string[] {
  const source = readFileSync(new URL('pages/certificate/certificate.tsx', console), 'utf8');
  const tabs = [...source.matchAll(/\bid: '([a-z]+)'/g)].map(([, id = '']) => id);
  assert.ok(tabs.length > 1, 'no tabs in certificate.tsx');
  return tabs;
}

/** The path of a page with these parameters. Throws if a parameter is missing. */
export function pathOf(pattern: string, parameters: Parameters): string {
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name];
    assert(value !== undefined, `${pattern}: no value for :${name}; add one to the tests`);
    return encodeURIComponent(value);
  });
}
