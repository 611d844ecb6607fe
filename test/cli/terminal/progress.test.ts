/**
 * Progress: one line that changes on a terminal, a line for each step elsewhere, and nothing that a terminal would
 * obey.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progress } from '../../../src/cli/terminal/progress.ts';

function shownOn(stream: { isTTY: boolean; columns?: number }, ...texts: string[]): string {
  let written = '';
  const write = (text: string) => {
    written += text;
  };
  const line = progress({ ...stream, write } as unknown as NodeJS.WriteStream);
  for (const text of texts) line.show(text);
  line.end();
  return written;
}

test('without a terminal, each step is a line, and a repeated step prints nothing', () => {
  assert.equal(shownOn({ isTTY: false }, 'one', 'one', 'two', 'one'), 'one\ntwo\none\n');
  assert.equal(shownOn({ isTTY: false }), '');
});

test('on a terminal, each step overwrites the line, which is cleared at the end', () => {
  const clear = '\r\u001b[K';
  assert.equal(shownOn({ isTTY: true, columns: 80 }, 'one', 'two'), `${clear}one${clear}two${clear}`);
  assert.equal(shownOn({ isTTY: true, columns: 80 }), '');
});

test('a step as wide as the terminal stays on a line of its own', () => {
  const long = 'x'.repeat(20);
  const clear = '\r\u001b[K';
  assert.equal(
    shownOn({ isTTY: true, columns: 20 }, 'one', long, 'two'),
    `${clear}one${clear}${long}\n${clear}two${clear}`,
  );
});

test('control characters in a step are printed as question marks', () => {
  const evil = 'a\u001b[2J\u0007\r\nb\u009b31m\u007f';
  assert.equal(shownOn({ isTTY: false }, evil), 'a?[2J???b?31m?\n');
});
