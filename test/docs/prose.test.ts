/** The documentation reads as language.md wants it: short paragraphs, and none of the words that it refuses. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');
const maxSentences = 4;

const refused = [
  ...['whoever', 'whatever', 'somebody', 'anybody', 'nobody', 'anew', 'shall', 'mend', 'hence', 'thereof'],
  ...['cannot be had', 'is to be', 'are to be', 'also where', 'for good', 'for ever', 'at hand', 'looked at'],
  ...['wishes', 'asked for by', 'goes on', 'go on', 'is told', 'are told', 'stands in'],
];

/** Text without code, without what other programs wrote, and without the names of tests in brackets. */
function prose(markdown: string): string {
  return markdown
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^<!-- (\w+) -->[\s\S]*?<!-- \/\1 -->/gm, '')
    .replaceAll(/^ {4}.*$/gm, '')
    .replaceAll(/`[^`\n]*`/g, 'x')
    .replaceAll(/\[[a-z0-9/-]+\](?!\()/g, '');
}

function complaints(markdown: string): string[] {
  const text = prose(markdown);
  const words = refused.filter((word) => new RegExp(`\\b${word}\\b`, 'i').test(text));
  const paragraphs = text
    .split(/\n\s*\n|\n(?=[-|#] ?|\d+\. )/)
    .map((paragraph) => paragraph.trim())
    .filter((paragraph) => !/^[|#]/.test(paragraph));
  const long = paragraphs.filter(
    (paragraph) => [...paragraph.matchAll(/[.!?](?:\*\*)?(?=\s+[A-Z`*(]|\s*$)/g)].length > maxSentences,
  );
  return [...words, ...long.map((paragraph) => `${paragraph.slice(0, 60)}…`)];
}

test('every page has short paragraphs and plain words', () => {
  for (const page of ['README.md', ...globSync('docs/**/*.md', { cwd: root })]) {
    const text = readFileSync(join(root, page), 'utf8');
    // Those are written from the sources, where their texts are looked after.
    if (!text.startsWith('<!-- Written by')) assert.deepEqual(complaints(text), [], page);
  }
});

test('a long paragraph and a refused word are found', () => {
  const text = 'One. Two. Three. Four. Five.\n\nA vault shall `mend` it.\n\n    whoever\n';
  assert.deepEqual(complaints(text), ['shall', 'One. Two. Three. Four. Five.…']);
});
