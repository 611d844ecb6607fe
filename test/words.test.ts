/**
 * Words that no operator would say stay out of what people read: source with its comments, assets, docs.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

process.chdir(join(import.meta.dirname, '..'));

const refused = [
  ...[
    'whoever',
    'somebody',
    'nobody',
    'whatever',
    'anew',
    'shall',
    'mend',
    'mends',
    'mended',
    'mending',
    'hence',
  ],
  ...['thereof', 'cannot be had', 'is to be', 'also where', 'for good', 'at hand', 'looked at'],
  ...['as long as it is none', 'what is told', 'wishes', 'asked for by'],
];

/** Also over the end of a line, and the marks of a comment there. */
const pattern = new RegExp(`\\b(?:${refused.join('|').replaceAll(' ', '[\\s*/#]+')})\\b`, 'gi');

/** Texts with such a word that stay, and why. */
const exceptions: readonly { readonly file: string; readonly text: string; readonly why: string }[] = [
  {
    file: 'src/domain/access/common-passwords.json',
    text: ' whatever ',
    why: 'a common password',
  },
  {
    file: 'src/domain/access/common-passwords.license.txt',
    text: 'permission notice shall be',
    why: 'the license of the list, word for word',
  },
  {
    file: 'src/domain/access/common-passwords.license.txt',
    text: 'IN NO EVENT SHALL THE AUTHORS',
    why: 'the license of the list, word for word',
  },
];

function wordsIn(path: string, text: string): string[] {
  const kept = exceptions.filter(({ file }) => file === path);
  const rest = kept.reduce((left, { text: one }) => left.replaceAll(one, ' '), text);
  return [...rest.matchAll(pattern)].map(({ 0: word, index }) => {
    const line = rest.slice(0, index).split('\n').length;
    return `${path}:${line}: ${word.replaceAll(/\s+/g, ' ')}`;
  });
}

const files = globSync(['{src,assets,docs}/**', 'README.md', 'CHANGELOG.md'])
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => !/\.(?:png|ico|woff2|svg)$/.test(path) && statSync(path).isFile());

test('no text has a refused word', () => {
  assert.deepEqual(
    files.flatMap((path) => wordsIn(path, readFileSync(path, 'utf8'))),
    [],
  );
});

/** Openings of a title that leave its subject to the one before, or to a riddle. */
const opening =
  /^(?:what|who|whose|that|which|where|and|but|nor|also|then|so|it|its|they|those|others)\b|\b(?:at once|(?:is|are) none)\b/i;

const titled = /\b(?:test|suite)\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;

function riddlesIn(path: string, text: string): string[] {
  return [...text.matchAll(titled)]
    .map(([, single, double, template]) => single ?? double ?? template ?? '')
    .filter((title) => opening.test(title) || wordsIn(path, title).length > 0)
    .map((title) => `${path}: ${title}`);
}

test('titles of tests have a subject of their own and no refused word', () => {
  assert.deepEqual(
    globSync('test/**/*.ts').flatMap((path) => riddlesIn(path, readFileSync(path, 'utf8'))),
    [],
  );
});

test('titles that begin with a pronoun, or have a refused word, are found', () => {
  // So written that this file has no such title.
  const [one, many] = ['test', 'suite'];
  const text = `${one}("who asks", f);\n${many}(\`a key\`, f);\n${one}(\n'goes for good', f); ${one}('a key is none', f);`;
  assert.deepEqual(riddlesIn('a', text), ['a: who asks', 'a: goes for good', 'a: a key is none']);
});

test('words are found in any case and over the end of a line, and only whole', () => {
  const text = '// Whoever is\n * to be seen, SHALL mend it.\n// marshall amendments hence_forth nobody2';
  assert.deepEqual(wordsIn('a', text), ['a:1: Whoever', 'a:1: is * to be', 'a:2: SHALL', 'a:2: mend']);
  assert.deepEqual(wordsIn('a', 'const whatever = 1; // nobody'), ['a:1: whatever', 'a:1: nobody']);
});

test('each exception is needed', () => {
  const needless = exceptions.filter(
    ({ file, text }) => !existsSync(file) || !readFileSync(file, 'utf8').includes(text),
  );
  assert.deepEqual(needless, []);
});

/** The formatter leaves comments as they are. What has shipped of a migration is never edited. */
const maxColumns = 120;

const sources = globSync([
  '{src,test,bench,lint}/**/*.{ts,mjs}',
  'assets/console/**/*.{ts,tsx}',
  '*.{ts,mjs}',
])
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => !/\/migration-\d/.test(path));

test('no line of a comment is longer than 120 columns', () => {
  const long = sources.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        line.length > maxColumns && /^\s*(?:\/\/|\/?\*)/.test(line) ? [`${path}:${at + 1}`] : [],
      ),
  );
  assert.deepEqual(long, []);
});
