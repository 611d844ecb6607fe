/** Files that people hand to commands; `-` is standard input. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import type { Terminal } from './terminal.ts';

/** Certificates and keys are small; whatever is larger is the wrong file. */
export const largestInput = 1024 * 1024;

/** The bytes of the file. Throws OperatorError where it cannot be read and `payload_too_large` where it is over `largest`. */
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
    if (fstatSync(file).isDirectory()) throw new Error('it is a directory');
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
        hint: 'Certificates and keys are much smaller; look whether this is the right file.',
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** For what cannot be read, and why. */
export function unreadable(path: string, cause: unknown): OperatorError {
  return new OperatorError(`${path} cannot be read: ${(cause as Error).message}`, {
    hint: 'Name a file that exists and that this user may read.',
    cause,
  });
}
