/** Errors of the operating system become a message and a hint; all other errors are left alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineTrouble } from '../../../src/cli/commands/run.ts';

const systemError = (code: string) => Object.assign(new Error(`${code}: raw text, write`), { code });

const texts = {
  EMFILE: 'too many open files',
  ENFILE: 'too many open files on this host',
  ENOSPC: 'no space left on device',
  EDQUOT: 'disk quota exceeded',
  EIO: 'input/output error',
  EROFS: 'read-only file system',
  ENOMEM: 'out of memory',
};

for (const [code, text] of Object.entries(texts)) {
  test(`${code} is reported to the operator in plain words, with a hint`, () => {
    const error = systemError(code);
    const reported = machineTrouble(error);
    assert.equal(reported?.message, `system error: ${text}`);
    assert.match(reported?.hint ?? '', /^[A-Z].+\.$/);
    assert.equal(reported?.cause, error);
  });
}

for (const error of [
  systemError('ENOENT'),
  systemError('EAGAIN'),
  systemError('toString'),
  new TypeError('undefined is not a function'),
  Object.assign(new Error('a number'), { code: 5 }),
  undefined,
  null,
  'EMFILE',
]) {
  test(`${String(error)} is not an error of the operating system`, () =>
    assert.equal(machineTrouble(error), undefined));
}
