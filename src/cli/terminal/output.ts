/** Formats the output of commands as facts and JSON. Tables: table.ts. */
import { pipeline } from 'node:stream/promises';
import { escapedJson, printable } from '../../base/printable-text.ts';

/** One line per fact: label, then value. */
export function facts(pairs: readonly (readonly [label: string, value: string])[]): string {
  const width = Math.max(...pairs.map(([label]) => label.length));
  return pairs.map(([label, value]) => `${label.padEnd(width)}  ${printable(value)}\n`).join('');
}

/** Indented JSON with a final newline. What a terminal would act on is escaped. */
export function jsonText(value: unknown): string {
  return `${escapedJson(JSON.stringify(value, null, 2))}\n`;
}

/**
 * The output of `jsonText` for all pages as one array, in pieces, so that printing starts before all pages are read.
 */
export async function* jsonPieces(pages: AsyncIterable<readonly unknown[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield before + jsonText(page).slice('['.length, -'\n]\n'.length);
    before = ',';
  }
  yield before === '[' ? '[]\n' : '\n]\n';
}

/** Writes pieces of text with backpressure, so that a slow reader does not fill the memory. */
export async function printPieces(pieces: AsyncIterable<string>, stdout: NodeJS.WriteStream): Promise<void> {
  await pipeline(pieces, stdout, { end: false });
}

/** The days from `now` until `time`, as text. */
export function daysUntil(time: number, now: number): string {
  const days = Math.floor((time - now) / 86_400_000);
  if (time <= now) return 'expired';
  return days === 0 ? 'under 1 day' : `${days} day${days === 1 ? '' : 's'}`;
}
