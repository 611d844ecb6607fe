/** Files that people hand to commands: read whole up to 1 MiB, and refused with a sentence that names them. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { Problem } from '../../../src/base/problem.ts';
import { largestInput, readInput } from '../../../src/cli/terminal/input-file.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** A terminal on whose standard input these chunks arrive, one in each turn of the event loop. */
function typing(...chunks: Buffer[]): { stdin: NodeJS.ReadStream } {
  return { stdin: Readable.from(chunks) as unknown as NodeJS.ReadStream };
}

const untouched = {
  get stdin(): NodeJS.ReadStream {
    throw new Error('a file was named, so standard input is not for this command');
  },
};

test('a file is read whole, up to 1 MiB and including it', async (t) => {
  const path = join(tempDir(t), 'file');
  for (const size of [0, 1, 65_536, 65_537, largestInput]) {
    const content = Buffer.alloc(size, 'x');
    writeFileSync(path, content);
    assert.ok((await readInput(path, untouched)).equals(content), `${size} bytes`);
  }
});

test('a file over 1 MiB is rejected with its name, even an endless one', async (t) => {
  const path = join(tempDir(t), 'large');
  writeFileSync(path, Buffer.alloc(largestInput + 1));
  for (const file of [path, '/dev/zero']) {
    await assert.rejects(readInput(file, untouched), (error: unknown) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.code, 'payload_too_large');
      assert.equal(error.message, `${file} is larger than 1 MiB.`);
      return true;
    });
  }
});

test('a missing file and a directory are rejected with their names', async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'directory'));
  const cases = [
    [join(dir, 'absent'), /^cannot read .*absent: no such file or directory$/],
    [join(dir, 'directory'), /^cannot read .*directory: is a directory$/],
    ['', /: no such file or directory$/],
  ] as const;
  for (const [path, message] of cases) {
    await assert.rejects(readInput(path, untouched), (error: unknown) => {
      assert.ok(error instanceof OperatorError);
      assert.match(error.message, message);
      assert.equal(error.hint, 'Check the file name and its permissions.');
      return true;
    });
  }
});

test('a dash reads standard input to its end, even when it arrives late and in pieces', async () => {
  const pieces = [Buffer.from('one '), Buffer.alloc(0), Buffer.from('two')];
  assert.equal((await readInput('-', typing(...pieces))).toString(), 'one two');
  assert.equal((await readInput('-', typing())).length, 0);
});

test('standard input over 1 MiB is rejected', async () => {
  const half = Buffer.alloc(largestInput / 2);
  assert.equal((await readInput('-', typing(half, half))).length, largestInput);
  await assert.rejects(readInput('-', typing(half, half, Buffer.from('x'))), {
    code: 'payload_too_large',
    message: 'standard input is larger than 1 MiB.',
  });
});
