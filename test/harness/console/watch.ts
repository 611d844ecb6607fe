/**
 * Watches browser contexts for what no page of the console may do: errors and warnings (which include violations of the
 * content security policy), exceptions, and requests to other servers.
 */
import type { BrowserContext } from 'playwright-core';

export type Watch = {
  /** Unexpected events so far, and expected ones that did not happen. */
  readonly complaints: () => string[];
  /** Expects an error, such as a 4xx response, which browsers report. */
  readonly expectComplaint: (pattern: RegExp) => void;
  /** Allows an error that may or may not happen. */
  readonly excuse: (pattern: RegExp) => void;
  /** Ignores all later events, such as requests that fail while the context closes. */
  readonly stop: () => void;
};

/** Starts a watch. `add` adds a context to it. */
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
        if (url.origin !== origin && url.protocol !== 'data:') note(origin, `requested ${url.href}`);
      });
    },
    complaints: () => [
      ...found.filter((text) => ![...expected, ...excused].some((pattern) => pattern.test(text))),
      ...expected
        .filter((pattern) => !found.some((text) => pattern.test(text)))
        .map((pattern) => `nothing matched ${pattern}`),
    ],
    expectComplaint: (pattern) => expected.push(pattern),
    excuse: (pattern) => excused.push(pattern),
    stop: () => {
      isOver = true;
    },
  };
}
