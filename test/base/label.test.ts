/** Which new names are valid, and which read alike. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { comparableLabel, labelFault } from '../../src/base/label.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const valid: Readonly<Record<string, string>> = {
  'ASCII of all kinds': 'Team A / web-01 (prod), 10% of «all» + more_#',
  'accents, composed': 'Bürö ñandú',
  'accents, decomposed': 'Bu\u0308ro',
  Cyrillic: 'сервер 7',
  Greek: 'διακομιστής 1',
  Hebrew: 'שרת',
  Arabic: 'خادم ١',
  Devanagari: 'सर्वर',
  Thai: 'เซิร์ฟเวอร์',
  'Japanese with Latin': 'ウェブ用のkey 東京',
  'Chinese with Latin and Bopomofo': 'web 網站 ㄅㄆ',
  'Korean with Latin and Han': 'web 서버 大',
  'a script in rare use': 'ᎠᎡᎢ',
  'an emoji': 'web 🚀',
  'symbols of no script': 'µ ± ½ €',
};

const invalid: Readonly<Record<string, readonly [text: string, fault: RegExp]>> = {
  'a line break': ['a\nb', /character U\+000A; remove it/],
  'an escape': ['\u001b[31m', /U\+001B/],
  'a C1 control character': ['a\u009bb', /U\+009B/],
  'a zero width space': ['web\u200b', /invisible or unassigned character U\+200B; remove it/],
  'a zero width joiner': ['we\u200db', /U\+200D/],
  'a soft hyphen': ['we\u00adb', /U\+00AD/],
  'a mark of direction': ['x\u202egnp', /U\+202E/],
  'an isolate': ['\u2066x\u2069', /U\+2066/],
  'a byte order mark in the middle': ['a\ufeffb', /U\+FEFF/],
  'a line separator': ['a\u2028b', /U\+2028/],
  'a variation selector': ['web\ufe0f', /U\+FE0F/],
  'a Hangul filler': ['web\u3164', /U\+3164/],
  'a tag character': ['web\u{e0041}', /U\+E0041/],
  'a private character': ['\ue000', /U\+E000/],
  'an unassigned character': ['\u0378', /U\+0378/],
  'half a surrogate pair': ['a\ud800', /U\+D800/],
  'two spaces': ['web  1', /two spaces in a row/],
  'one Cyrillic letter in Latin ones': [
    'w\u0435b',
    /mix U\+0435 \(Cyrillic\) with Latin letters; write it in one/,
  ],
  'Latin letters after a Cyrillic one': ['\u0430pi', /mix U\+0430 \(Cyrillic\) with Latin letters/],
  'a Greek letter in Latin ones': ['\u03bfps', /U\+03BF \(Greek\)/],
  'Greek and Cyrillic': ['\u03b1\u0431', /mix U\+0431 \(Cyrillic\) with Greek letters/],
  'Hangul and Hiragana': ['서 の', /Hiragana.*Hangul/],
  'a letter in rare use in Latin ones': ['web\u13a0', /mix U\+13A0 with Latin letters/],
  'a blank Braille cell': ['web\u2800', /U\+2800/],
};

const alike: readonly (readonly [one: string, other: string])[] = [
  ['web', 'WEB'],
  ['web', 'ｗｅｂ'],
  ['web', '𝐰𝐞𝐛'],
  ['web 1', 'web\u00a01'],
  ['Büro', 'BU\u0308RO'],
  ['Straße', 'STRASSE'],
  ['ΟΔΟΣ', 'οδος'],
  ['office', 'oﬃce'],
  ['10', '１０'],
];

suite('a new name', () => {
  for (const [what, text] of Object.entries(valid)) {
    test(`with ${what} is valid`, () => assert.equal(labelFault(text), undefined));
  }
  for (const [what, [text, fault]] of Object.entries(invalid)) {
    test(`with ${what} is invalid`, () => assert.match(labelFault(text) ?? 'valid', fault));
  }
});

suite('two names', () => {
  for (const [one, other] of alike) {
    test(`read alike: ${one} and ${other}`, () => {
      assert.equal(comparableLabel(one), comparableLabel(other));
    });
  }

  test('with other letters do not read alike', () => {
    const names = ['web', 'web1', 'wéb', 'web 1', 'веб', ''];
    assert.equal(new Set(names.map(comparableLabel)).size, names.length);
  });

  test('in ASCII read alike if they are equal in lower case', () => {
    const ascii = fc.string({ unit: 'binary-ascii' });
    fc.assert(
      fc.property(ascii, (text) => comparableLabel(text) === text.toLowerCase()),
      fuzzRuns(500),
    );
  });

  test('have comparable forms that comparableLabel leaves unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        assert.equal(comparableLabel(comparableLabel(text)), comparableLabel(text));
      }),
      fuzzRuns(500),
    );
  });
});
