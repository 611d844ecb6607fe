/** How many lines a command prints: what is a number of them, and what is refused with a number that would do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countFrom, limitFrom } from '../../../src/cli/terminal/count-option.ts';
import { Misuse } from '../../../src/cli/terminal/misuse.ts';

test('a count is a whole number in its bounds, or the default if none is given', () => {
  assert.deepEqual(
    [limitFrom(undefined), limitFrom('1'), limitFrom('1000'), limitFrom('007')],
    [50, 1, 1000, 7],
  );
  assert.equal(countFrom('--lines', '0', { least: 0, usual: 10 }), 0);
  for (const text of ['', '0', '-1', '1001', '1e2', '0x10', '1.5', ' 5', 'many']) {
    assert.throws(() => limitFrom(text), Misuse, text);
  }
  assert.throws(() => limitFrom('0', 'for all events, use "vault audit export"'), {
    message: '--limit: "0" is not a number from 1 to 1000',
    hint: 'Use a number such as 50; for all events, use "vault audit export".',
  });
});
