/** How strictly options are read: every form that is meant counts, and everything else is refused with a hint. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readArguments } from '../../../src/cli/terminal/arguments.ts';
import { Misuse } from '../../../src/cli/terminal/misuse.ts';

const specs = {
  name: { type: 'string', description: 'a name', valueHint: 'NAME', required: true },
  scope: { type: 'string', description: 'scopes', multiple: true },
  note: { type: 'string', description: 'a note' },
  force: { type: 'boolean', description: 'anyway' },
} as const;

const read = (...raw: string[]) => readArguments(specs, raw, 'vault demo');

function assertRefused(raw: readonly string[], message: string, hint: string): void {
  assert.throws(
    () => read(...raw),
    (error: unknown) => {
      assert.ok(error instanceof Misuse, String(error));
      assert.deepEqual({ message: error.message, hint: error.hint }, { message, hint });
      return true;
    },
    raw.join(' '),
  );
}

test('a value is written after a space or after an equals sign', () => {
  const expected = { name: 'a', scope: [], note: undefined, force: false };
  assert.deepEqual(read('--name', 'a'), expected);
  assert.deepEqual(read('--name=a'), expected);
});

test('a value may hold spaces, equals signs and dashes, and may be empty', () => {
  assert.deepEqual(read('--name=a=b', '--note', 'x y - z').name, 'a=b');
  assert.equal(read('--name', 'a', '--note=').note, '');
  assert.equal(read('--name', 'a', '--note', '').note, '');
});

test('a repeated option keeps every value in the order given', () => {
  const { scope } = read('--scope', 'b', '--name', 'n', '--scope=a', '--scope', 'b');
  assert.deepEqual(scope, ['b', 'a', 'b']);
});

test('an option that cannot be repeated is rejected when it is given twice, even with the same value', () => {
  assertRefused(['--name', 'a', '--name=a'], '--name is given 2 times', 'Give it only once.');
  assertRefused(
    ['--name=a', '--note=a', '--note=b', '--note=c'],
    '--note is given 3 times',
    'Give it only once.',
  );
});

test('a boolean option is on or off, and takes no value', () => {
  assert.equal(read('--name', 'a').force, false);
  assert.equal(read('--name', 'a', '--force').force, true);
  assert.equal(read('--force', '--name', 'a', '--force').force, true);
  assertRefused(['--name=a', '--force=true'], '--force takes no value', 'Write --force without a value.');
  assertRefused(['--name=a', '--force='], '--force takes no value', 'Write --force without a value.');
  assertRefused(['--force', 'true', '--name=a'], 'unexpected argument "true"', 'Try: vault demo --help');
});

test('an unknown option is rejected with the closest known one', () => {
  assertRefused(['--nam', 'a'], 'unknown option --nam', 'Did you mean "--name"?');
  assertRefused(['--scopes=a'], 'unknown option --scopes', 'Did you mean "--scope"?');
  assertRefused(['--SCOPE=a'], 'unknown option --SCOPE', 'Did you mean "--scope"?');
  assertRefused(['--elsewhere=a'], 'unknown option --elsewhere', 'Try: vault demo --help');
  assertRefused(['--no-force'], 'unknown option --no-force', 'Did you mean "--force"?');
});

test('an option of one letter is unknown, even in a bundle', () => {
  assertRefused(['-x'], 'unknown option -x', 'Try: vault demo --help');
  assertRefused(['-name', 'a'], 'unknown option -n', 'Try: vault demo --help');
});

test('names of built-in JavaScript properties are unknown options', () => {
  for (const word of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
    assertRefused(['--name=a', `--${word}=x`], `unknown option --${word}`, 'Try: vault demo --help');
  }
});

test('an unexpected argument is rejected in any position', () => {
  assertRefused(['stray', '--name=a'], 'unexpected argument "stray"', 'Try: vault demo --help');
  assertRefused(['--name', 'a', 'stray'], 'unexpected argument "stray"', 'Try: vault demo --help');
  assertRefused(['--name=a', '--', '--note=b'], 'unexpected argument "--note=b"', 'Try: vault demo --help');
  assertRefused(['--name=a', '-'], 'unexpected argument "-"', 'Try: vault demo --help');
});

test('an option without its value is rejected at the end of the line and before another option', () => {
  assertRefused(['--name'], '--name needs a value', 'Write --name NAME.');
  assertRefused(['--name=a', '--note'], '--note needs a value', 'Write --note VALUE.');
  assertRefused(
    ['--name', '--force'],
    '--name needs a value, but is followed by "--force"',
    'If that is the value, write --name=--force.',
  );
});

test('a value that begins with a dash is written with an equals sign; a dash alone is a value', () => {
  assert.equal(read('--name=-a').name, '-a');
  assert.equal(read('--name=--force').name, '--force');
  assert.equal(read('--name', '-').name, '-');
  assertRefused(
    ['--name', '-1'],
    '--name needs a value, but is followed by "-1"',
    'If that is the value, write --name=-1.',
  );
});

test('a missing required option is reported', () => {
  assertRefused([], '--name is missing', 'Try: vault demo --help');
  assertRefused(['--force', '--scope=a'], '--name is missing', 'Try: vault demo --help');
});

test('a positional argument sets its option, and a second one is rejected', () => {
  const withFile = {
    file: { type: 'string', positional: true, description: 'a file', valueHint: 'FILE', required: true },
    replace: { type: 'boolean', description: 'anyway' },
  } as const;
  const readFile = (...raw: string[]) => readArguments(withFile, raw, 'vault demo');
  assert.deepEqual(readFile('--replace', 'a.b'), { file: 'a.b', replace: true });
  assert.deepEqual(readFile('-', '--replace'), { file: '-', replace: true });
  assert.deepEqual(readFile('--', '--odd'), { file: '--odd', replace: false });
  assert.throws(() => readFile(), /FILE is missing/);
  assert.throws(() => readFile('a', 'b'), /unexpected argument "b"/);
  assert.throws(() => readFile('--file', 'a'), /unknown option --file/);
});

test('a short option works like its long form, with the same errors', () => {
  const withShort = {
    file: { type: 'string', short: 'f', description: 'a file', valueHint: 'FILE', required: true },
    yes: { type: 'boolean', short: 'y', description: 'anyway' },
  } as const;
  const readFile = (...raw: string[]) => readArguments(withShort, raw, 'vault demo');
  assert.deepEqual(readFile('-f', 'a'), { file: 'a', yes: false });
  assert.deepEqual(readFile('-fa', '-y'), { file: 'a', yes: true });
  assert.deepEqual(readFile('-yf', '-'), { file: '-', yes: true });
  assert.throws(() => readFile('-f'), /-f needs a value/);
  assert.throws(() => readFile('-f', '-y'), {
    hint: 'If that is the value, write --file=-y.',
  });
  assert.throws(() => readFile('-f', 'a', '--file', 'b'), /--file is given 2 times/);
  assert.throws(() => readFile('-F', 'a'), /unknown option -F/);
  assert.throws(() => readFile(), /--file is missing/);
});
