/** URLs from other servers: only http(s) URLs become links, everything else stays text. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { webAddress } from '../../../assets/console/text/web-address.ts';

test('only http and https URLs become links', () => {
  for (const text of ['https://ca.test/terms', 'http://ca.test', 'HTTPS://CA.test/x', ' https://ca.test ']) {
    assert.match(webAddress(text) ?? '', /^https?:\/\/ca\.test\//, text);
  }
  const others = [
    ...['javascript:alert(1)', 'JavaScript:alert(1)', ' java\nscript:alert(1)', '\u0001javascript:alert(1)'],
    ...[
      'data:text/html,x',
      'vbscript:x',
      'file:///etc/passwd',
      'blob:https://ca.test/1',
      'ca.test',
      '//ca.test',
    ],
    ...['', 'https:', 'view-source:https://ca.test', 'mailto:a@ca.test'],
  ];
  for (const text of others) assert.equal(webAddress(text), undefined, text);
});

test('every link of the console points into the vault or is a WebLink', () => {
  const paths = globSync('assets/console/**/*.tsx').filter(
    (path) => !path.endsWith('components/web-link.tsx'),
  );
  const links = paths.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/\bhref=(?:"([^"]*)"|\{\s*([^}\s]*))/g)].map(
      ([, text, expression = '']) => text ?? expression,
    ),
  );
  assert.ok(links.length > 20);
  // Besides literal paths: values that components receive from callers, which are checked too, and lists of pages.
  const fromCallers = ['href', 'item.href', 'page.path', 'path', "exportPath('csv')", "exportPath('jsonl')"];
  assert.deepEqual(
    links.filter((link) => !/^`?\/(?!\/)|^#/.test(link) && !fromCallers.includes(link)),
    [],
  );
});
