/**
 * A copy of a short text that was cut from a long one: V8 otherwise keeps the long one in memory as long as the short
 * one.
 */

/** The same text, with memory of its own. */
export function detached(text: string): string {
  return Buffer.from(text).toString();
}
