/**
 * What no page of the console may do, watched in a browser all the time: errors and warnings (where Chromium also reports
 * violations of the content security policy), exceptions, and requests to anybody but the vault.
 */
import type { BrowserContext } from 'playwright-core';

export type Watch = {
  /** What happened so far and was not expected; and what was expected and never happened. */
  readonly complaints: () => string[];
  /** A refusal that the test asks for: browsers report each answer from 400 on as an error. */
  readonly expectComplaint: (pattern: RegExp) => void;
  /** What may happen or not, as two things race. */
  readonly excuse: (pattern: RegExp) => void;
  /** Nothing counts from now on: whatever is under way breaks off. */
  readonly stop: () => void;
};

/** Begins to watch. The other functions are for all who are watched, this one for each of them. */
export function startWatch(origin: string): Watch & { readonly add: (context: BrowserContext) => void } {
  const found: string[] = [];
  const expected: RegExp[] = [];
  const excused: RegExp[] = [];
  let isOver = false;
  const note = (url: string, what: string) => {
    if (!isOver) found.push(`${URL.parse(url)?.pathname ?? url}: ${what}`);
  };
  return {
    add: (context) => {
      context.on('console', (message) => {
        if (message.type() !== 'error' && message.type() !== 'warning') return;
        note(message.page()?.url() ?? '', `${message.text()} ${message.location().url}`);
      });
      context.on('weberror', (thrown) => note(thrown.page()?.url() ?? '', String(thrown.error())));
      context.on('request', (request) => {
        const url = new URL(request.url());
        if (url.origin !== origin && url.protocol !== 'data:') note(origin, `asks ${url.href}`);
      });
    },
    complaints: () => [
      ...found.filter((text) => ![...expected, ...excused].some((pattern) => pattern.test(text))),
      ...expected
        .filter((pattern) => !found.some((text) => pattern.test(text)))
        .map((pattern) => `nothing was like ${pattern}`),
    ],
    expectComplaint: (pattern) => expected.push(pattern),
    excuse: (pattern) => excused.push(pattern),
    stop: () => {
      isOver = true;
    },
  };
}
