/** Reads the input files of commands; `-` is standard input. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { Terminal } from './terminal.ts';

/** Certificates and keys are small; a larger file is the wrong one. */
export const largestInput = 1024 * 1024;

/**
 * The bytes of the file. Throws OperatorError if it cannot be read and `payload_too_large` if it exceeds `largest`
 * bytes.
 */
export async function readInput(
  path: string,
  terminal: Pick<Terminal, 'stdin'>,
  largest = largestInput,
): Promise<Buffer> {
  try {
    return path === '-'
      ? await joined(terminal.stdin, 'standard input', largest)
      : await joined(chunksOf(path), path, largest);
  } catch (error) {
    throw error instanceof Problem ? error : unreadable(path, error);
  }
}

function* chunksOf(path: string): Iterable<Buffer> {
  const file = openSync(path, 'r');
  try {
    if (fstatSync(file).isDirectory()) throw new Error('is a directory');
    for (;;) {
      const chunk = Buffer.alloc(65_536);
      const length = readSync(file, chunk);
      if (length === 0) return;
      yield chunk.subarray(0, length);
    }
  } finally {
    closeSync(file);
  }
}

async function joined(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  name: string,
  largest: number,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > largest) {
      throw new Problem('payload_too_large', {
        detail: `${name} is larger than ${largest / 1024 / 1024} MiB.`,
        hint: 'Certificates and keys are much smaller. Check that this is the right file.',
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The error for a file that cannot be read. */
export function unreadable(path: string, cause: unknown): OperatorError {
  return new OperatorError(`cannot read ${path}: ${describeSystemError(cause)}`, {
    hint: 'Check the file name and its permissions.',
    cause,
  });
}
