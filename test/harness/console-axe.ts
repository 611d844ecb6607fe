/** axe-core in a page of the console: what people with other senses and tools would stumble over. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

type Violation = {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
};

let source: string | undefined;

/** What axe-core has against the page as it is now, in its colours of now: a line for each place. */
export function violations(page: Page): Promise<string[]> {
  return run(page, {});
}

/** The same of its colours alone: the one rule that another theme can break. */
export function paleTexts(page: Page): Promise<string[]> {
  return run(page, { runOnly: ['color-contrast'] });
}

async function run(page: Page, options: object): Promise<string[]> {
  source ??= readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
  // Not as a script element: the page's own policy forbids it.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  const wishes = JSON.stringify({ resultTypes: ['violations'], ...options });
  const found = await page.evaluate(`axe.run(${wishes}).then((result) => result.violations)`);
  return (found as readonly Violation[]).flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary}`),
  );
}
