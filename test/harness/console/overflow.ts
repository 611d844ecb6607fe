/** Whether a page has room. */
import type { Page } from 'playwright-core';

const widestOverflow = `Math.max(
  document.documentElement.scrollWidth - innerWidth,
  ...[...document.querySelectorAll('.table-frame')].map((frame) => frame.scrollWidth - frame.clientWidth),
)`;

/** By how many pixels the page is wider than the window, or what is in a table than the table. At most 0: it fits. */
export async function overflowOf(page: Page): Promise<number> {
  return Number(await page.evaluate(widestOverflow));
}
