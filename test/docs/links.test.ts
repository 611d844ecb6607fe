/** No link of the documentation is dead: each names a file that is there and, behind `#`, a heading in it. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');

/** What is not in a code block or in code. */
function prose(markdown: string): string {
  return markdown
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^ {4}.*$/gm, '')
    .replaceAll(/`[^`\n]*`/g, '');
}

/** As GitHub makes an anchor of a heading. */
function anchors(markdown: string): string[] {
  const headings = markdown.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,4} (.*)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^a-z0-9 _-]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The dead links of a page. `read` returns a file's text, or undefined where there is none. */
function deadLinks(page: string, read: (path: string) => string | undefined): string[] {
  const text = prose(read(page) ?? '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(
    ([, link, attribute]) => link ?? attribute ?? '',
  );
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : normalize(join(dirname(page), path));
    const content = read(file);
    return content === undefined || (anchor !== undefined && !anchors(content).includes(anchor));
  });
}

const onDisk = (path: string) =>
  existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined;

test('every link of the documentation leads somewhere', () => {
  const pages = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })];
  assert.ok(pages.length > 40, `${pages.length} pages`);
  assert.deepEqual(
    pages.flatMap((page) => deadLinks(page, onDisk).map((target) => `${page}: ${target}`)),
    [],
  );
});

test('a name that links to a source file is defined in that file', () => {
  const page = 'docs/explanation/how-it-works.md';
  const links = [...(onDisk(page) ?? '').matchAll(/\[`(\w+)`\]\(([^)]+\.ts)\)/g)];
  assert.ok(links.length > 40, `${links.length} links`);
  const wrong = links.filter(([, name, path = '']) => {
    const content = onDisk(normalize(join(dirname(page), path))) ?? '';
    return !new RegExp(`\\b(function|class|const|type) ${name}\\b`).test(content);
  });
  assert.deepEqual(
    wrong.map(([link]) => link),
    [],
  );
});

test('every page of docs can be reached from README.md', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) {
    for (const [, target = ''] of prose(onDisk(page) ?? '').matchAll(/\]\(([^)\s#]+\.md)(?:#[^)]*)?\)/g))
      if (!/^[a-z]+:/.test(target)) reached.add(normalize(join(dirname(page), target)));
  }
  assert.deepEqual(
    globSync('docs/**/*.md', { cwd: root }).filter((page) => !reached.has(page)),
    [],
  );
});

test('a link to a missing file or heading is reported', () => {
  const files: Record<string, string> = {
    'docs/a.md':
      '[b](b.md#two-words) [gone](c.md) [no heading](b.md#three) [out](https://example.com) `[code](d.md)`',
    'docs/b.md': '# B\n\n## Two words\n',
  };
  assert.deepEqual(
    deadLinks('docs/a.md', (path) => files[path]),
    ['c.md', 'b.md#three'],
  );
});
