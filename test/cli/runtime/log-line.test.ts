/** The log on a terminal: one line per event, whatever the fields hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { readableLine } from '../../../src/cli/runtime/log-line.ts';

const time = '2026-11-23T01:02:03.456Z';
const prefix = '2026-11-23T01:02:03Z';

const lines: [fields: object, line: string][] = [
  [{ level: 'info', msg: 'listening', url: 'http://127.0.0.1:1' }, 'info  listening url=http://127.0.0.1:1'],
  [{ level: 'warn', msg: 'slow', ms: 12, ok: false, of: null }, 'warn  slow ms=12 ok=false of=null'],
  [{ level: 'info', msg: 'm', name: 'two words', empty: '' }, 'info  m name="two words" empty=""'],
  [{ level: 'info', msg: 'm', name: 'a="b"' }, 'info  m name="a=\\"b\\""'],
  [
    { level: 'info', msg: 'm', settings: ['a', 'b c'], changed: { log_level: 'debug', sub: { x: 1 } } },
    'info  m settings=["a","b c"] changed.log_level=debug changed.sub.x=1',
  ],
  [
    { level: 'info', msg: 'm', name: 'line\nnext\u001b[31m\u009b\u007f\u202e\u2028' },
    'info  m name="line\\nnext\\u001b[31m\\u009b\\u007f\\u202e\\u2028"',
  ],
  [{ level: 'info', msg: 'two\nlines' }, 'info  two\\u000alines'],
  [
    {
      level: 'error',
      msg: 'it failed',
      err: {
        type: 'OperatorError',
        message: 'cannot write',
        hint: 'Make room.',
        cause: { type: 'TypeError', message: 'x is not', at: 'f (a.ts:1:2)', stack: 'TypeError\n at f' },
      },
    },
    'error it failed err="cannot write" err.hint="Make room." err.cause="TypeError: x is not" ' +
      'err.cause.at="f (a.ts:1:2)" err.cause.stack="TypeError\\n at f"',
  ],
];

for (const [fields, expected] of lines) {
  test(`a log event prints as: ${expected}`, () => {
    const json = `${JSON.stringify({ time, ...fields })}\n`;
    assert.equal(readableLine(json, { color: false }), `${prefix} ${expected}\n`);
    assert.equal(stripVTControlCharacters(readableLine(json, { color: true })), `${prefix} ${expected}\n`);
  });
}

test('warnings and errors are colored when color is enabled', () => {
  const line = (level: string) => readableLine(JSON.stringify({ time, level, msg: 'm' }), { color: true });
  assert.ok(line('error').includes('\u001b[31merror\u001b[39m m'));
  assert.ok(line('warn').includes('\u001b[33mwarn \u001b[39m m'));
  assert.ok(!line('info').includes('\u001b'));
});
