/**
 * The list of all certificates is shown in parts, without duplicates, until it is complete; other long lists page by
 * page.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Certificates,
  type Growing,
  growingList,
  growingPages,
} from '../../../assets/console/data/growing-list.ts';
import type { Certificate } from '../../../assets/console/data/shapes.ts';

const certificate = (name: string, status = 'valid') => ({ name, status }) as Certificate;

/** Loads the list from these responses, which must be requested in order. */
async function loaded(answers: readonly [path: string, items: readonly Certificate[], next?: string][]) {
  const shown: Certificates[] = [];
  const left = [...answers];
  const whole = await growingList(
    '/certificates',
    (part) => shown.push(part),
    async (path) => {
      const [wanted, items = [], next] = left.shift() ?? [];
      assert.equal(path, wanted);
      return { items, next };
    },
  );
  assert.deepEqual(left, []);
  const texts = ({ items }: Certificates) => items.map(({ name, status }) => `${name} ${status}`);
  return { shown: shown.map(texts), hasWhole: shown.some(({ isWhole }) => isWhole), whole };
}

test('a few certificates take one request and are sorted by name', async () => {
  const few = [certificate('www', 'expired'), certificate('db'), certificate('mail')];
  const { shown, whole } = await loaded([['/certificates?sort=status&limit=200', few]]);
  assert.deepEqual(shown, []);
  assert.deepEqual([whole.isWhole, whole.items.map(({ name }) => name)], [true, ['db', 'mail', 'www']]);
});

test('of many certificates, those that need attention are shown first, and each appears once', async () => {
  const { shown, hasWhole, whole } = await loaded([
    ['/certificates?sort=status&limit=200', [certificate('z', 'expired'), certificate('b')], '/two'],
    ['/certificates?limit=1000', [certificate('a'), certificate('b', 'pending')], '/certificates?after=b'],
    ['/certificates?after=b', [certificate('c'), certificate('d')], '/certificates?after=d'],
    ['/certificates?after=d', [certificate('z')]],
  ]);
  assert.deepEqual(shown, [
    ['z expired', 'b valid'],
    ['z expired', 'a valid', 'b pending'],
    ['z expired', 'a valid', 'b pending', 'c valid', 'd valid'],
  ]);
  assert.equal(hasWhole, false, 'a part was reported as the whole');
  assert.equal(whole.isWhole, true);
  assert.deepEqual(
    whole.items.map(({ name, status }) => `${name} ${status}`),
    ['a valid', 'b pending', 'c valid', 'd valid', 'z valid'],
  );
});

test('a certificate that is deleted between two requests is not in the result', async () => {
  const { whole } = await loaded([
    ['/certificates?sort=status&limit=200', [certificate('gone')], '/two'],
    ['/certificates?limit=1000', [certificate('a')]],
  ]);
  assert.deepEqual(
    whole.items.map(({ name }) => name),
    ['a'],
  );
});

/** Loads a list of numbers from pages by path. */
async function pagesOf(pages: Readonly<Record<string, readonly [items: readonly number[], next?: string]>>) {
  const shown: Growing<number>[] = [];
  const asked: string[] = [];
  const whole = await growingPages<number>(
    '/first',
    (part) => shown.push(part),
    async (path) => {
      asked.push(path);
      const [items, next] = pages[path] ?? assert.fail(path);
      return { items, next };
    },
  );
  return { shown, asked, whole };
}

test('a list of one page takes one request and shows no part', async () => {
  const { shown, asked, whole } = await pagesOf({ '/first': [[2, 1]] });
  assert.deepEqual([shown, asked, whole], [[], ['/first'], { items: [2, 1], isWhole: true }]);
});

test('each page of a list but the last is shown as a part, which later pages do not change', async () => {
  const { shown, asked, whole } = await pagesOf({
    '/first': [[1, 2], '/second'],
    '/second': [[], '/third'],
    '/third': [[3]],
  });
  assert.deepEqual(asked, ['/first', '/second', '/third']);
  assert.deepEqual(shown, [
    { items: [1, 2], isWhole: false },
    { items: [1, 2], isWhole: false },
  ]);
  assert.deepEqual(whole, { items: [1, 2, 3], isWhole: true });
});

test('a list with a page that fails is no list', async () => {
  await assert.rejects(
    growingPages(
      '/first',
      () => undefined,
      () => Promise.reject(new Error('unreachable')),
    ),
    /unreachable/,
  );
});
