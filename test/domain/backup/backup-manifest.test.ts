/** The page at the end of a backup: what it says comes back, and whatever else stands there is called what it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  lastLineSize,
  type Manifest,
  pageBody,
  pageEnd,
  pageSize,
  readPage,
} from '../../../src/domain/backup/backup-manifest.ts';

const manifest: Manifest = {
  format: 1,
  vault_version: '0.1.0',
  created_at: '2026-11-21T12:00:00Z',
  key_ids: ['22167d1c05b7bba4'],
  database_size: 229_376,
  schema: ['0001-first-schema'],
  counts: { certificates: 2 },
};
const digest = Buffer.alloc(32, 1);
const mac = Buffer.alloc(32, 2);
const page = (said: object = manifest) => Buffer.concat([pageBody(said as Manifest), pageEnd(digest, mac)]);

test('a manifest page has the page size and reads back its manifest, digest and MAC', () => {
  assert.equal(page().length, pageSize);
  assert.deepEqual(readPage(page()), { manifest, digest, mac });
});

test('a manifest page is readable text from its first line to its last', () => {
  const lines = page().toString().split('\n');
  assert.match(lines[0] ?? '', /^Certificate Vault backup: .*"vault restore FILE" puts it back\.$/);
  assert.match(page().toString(), /^ "created_at": "2026-11-21T12:00:00Z",$/m);
  assert.equal(lines.at(-2), `sha256 ${'01'.repeat(32)} mac ${'02'.repeat(32)}`);
});

test('readPage accepts unknown members and returns newer for a later format', () => {
  assert.equal(typeof readPage(page({ ...manifest, hostname: 'a' })), 'object');
  assert.equal(readPage(page({ ...manifest, format: 2, counts: undefined })), 'newer');
});

for (const [what, bytes, verdict] of [
  ['an empty buffer', Buffer.alloc(0), 'none'],
  ['a page of zeros', Buffer.alloc(pageSize), 'none'],
  ['a page that is one byte short', page().subarray(1), 'none'],
  [
    'a page without its last line',
    Buffer.concat([page().subarray(0, -lastLineSize), Buffer.alloc(lastLineSize)]),
    'damaged',
  ],
  [
    'a page without JSON',
    Buffer.from(page().toString('latin1').replace('"format"', "'format'"), 'latin1'),
    'damaged',
  ],
  ['a manifest without its counts', page({ ...manifest, counts: undefined }), 'damaged'],
  ['a manifest that is a list', page([]), 'damaged'],
  ['an invalid time', page({ ...manifest, created_at: 'noon' }), 'damaged'],
  ['a manifest without key ids', page({ ...manifest, key_ids: [] }), 'damaged'],
] as const) {
  test(`readPage returns ${verdict} for ${what}`, () => {
    assert.equal(readPage(bytes), verdict);
  });
}

test('pageBody throws when the manifest does not fit on the page', () => {
  const counts = Object.fromEntries([...Array(400).keys()].map((index) => [`table_${index}`, index]));
  assert.throws(() => pageBody({ ...manifest, counts }), /does not fit/);
});
