/** Matching paths with patterns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchPath } from '../../assets/console/path-pattern.ts';

test('a parameter is one decoded segment of the path, and never empty', () => {
  assert.deepEqual(matchPath('/certificates/:name', '/certificates/%2A.example.com'), {
    name: '*.example.com',
  });
  assert.deepEqual(matchPath('/', '/'), {});
  for (const path of [
    '/certificates',
    '/certificates/',
    '/certificates/a/b',
    '/Certificates/a',
    '/certificates/%zz',
  ]) {
    assert.equal(matchPath('/certificates/:name', path), undefined, path);
  }
});
