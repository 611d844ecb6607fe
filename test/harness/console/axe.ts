/** Runs axe-core in a page of the console to find accessibility violations. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

type Violation = {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
};

let source: string | undefined;

/** The violations on the page in its current theme, one line per element. */
export function violations(page: Page): Promise<string[]> {
  return run(page, {});
}

/** Only the contrast violations, the one rule that depends on the theme. */
export function contrastViolations(page: Page): Promise<string[]> {
  return run(page, { runOnly: ['color-contrast'] });
}

async function run(page: Page, options: object): Promise<string[]> {
  source ??= readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
  // Evaluated, because the page's content security policy blocks script elements.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  const axeOptions = JSON.stringify({ resultTypes: ['violations'], ...options });
  const found = await page.evaluate(`axe.run(${axeOptions}).then((result) => result.violations)`);
  return (found as readonly Violation[]).flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary}`),
  );
}
