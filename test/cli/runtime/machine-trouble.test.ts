/** Errors of the machine become sentences with what to do; all others stay what they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineTrouble } from '../../../src/cli/runtime/machine-trouble.ts';

const systemError = (code: string) => Object.assign(new Error(`${code}: the system says why`), { code });

for (const code of ['EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'ENOMEM']) {
  test(`${code} is told to whoever runs the vault, with what to do`, () => {
    const error = systemError(code);
    const told = machineTrouble(error);
    assert.equal(told?.message, `the machine does not let it go on: ${code}: the system says why`);
    assert.match(told?.hint ?? '', /^[A-Z].+\.$/);
    assert.equal(told?.cause, error);
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
  test(`${String(error)} is not the machine's`, () => assert.equal(machineTrouble(error), undefined));
}
