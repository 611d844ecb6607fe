/** Emergency replacements in words, and the requests of the form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  byObstacle,
  certificateCount,
  fewNames,
  progressText,
  type ReplacementDraft,
  requestOf,
  selectionText,
  selectsAny,
  usualReason,
} from '../../../assets/console/certificates/replacement-words.ts';
import { replacedStates } from '../../../assets/console/data/replacement-shapes.ts';
import { certificateStates } from '../../../src/domain/replacements/replacement-views.ts';

const none = { waiting: 0, renewing: 0, issued: 0, live: 0, revoked: 0, failed: 0, canceled: 0 };

const progress: readonly (readonly [counts: Partial<typeof none>, text: string])[] = [
  [{ waiting: 1 }, '0 of 1 revoked'],
  [{ waiting: 2, live: 2, revoked: 3, failed: 1 }, '3 of 8 revoked, 1 failed'],
  [{ revoked: 1, canceled: 2 }, '1 of 3 revoked, 2 canceled'],
  [{ revoked: 2000, failed: 1000, canceled: 2000 }, '2,000 of 5,000 revoked, 1,000 failed, 2,000 canceled'],
];

test('the progress of a replacement has all certificates, and those that failed or were canceled', () => {
  for (const [counts, text] of progress) {
    assert.equal(progressText({ certificates: { ...none, ...counts } }), text);
  }
});

const unselected = { issuer: null, labels: [], certificate: null };

const selections: readonly (readonly [Parameters<typeof selectionText>[0], text: string])[] = [
  [{ ...unselected, certificate: 'web' }, 'Certificate web'],
  [{ ...unselected, issuer: 'local-ca' }, 'Certificates of the issuer local-ca'],
  [{ ...unselected, labels: ['team=web', 'site=a'] }, 'Certificates with team=web, site=a'],
];

test('a replacement is named after its selection', () => {
  for (const [selection, text] of selections) assert.equal(selectionText(selection), text);
});

const draft: ReplacementDraft = {
  ...{ selection: 'certificate', certificate: ' web ', issuer: 'local-ca', labels: 'team=web, site=a' },
  ...{ reason: 'superseded', deadline: '' },
};

const requests: readonly (readonly [changes: Partial<ReplacementDraft>, request: object])[] = [
  [{}, { certificate: 'web', reason: 'superseded' }],
  [
    { selection: 'issuer', deadline: ' 4h ' },
    { issuer: 'local-ca', reason: 'superseded', deadline: '4h' },
  ],
  [
    { selection: 'labels', reason: 'ca-compromised' },
    { labels: ['team=web', 'site=a'], reason: 'ca-compromised' },
  ],
];

test('the request of a replacement has only the selection of its kind', () => {
  for (const [changes, request] of requests) assert.deepEqual(requestOf({ ...draft, ...changes }), request);
});

test('a replacement form without a name, an issuer or a label selects nothing', () => {
  const empty = { ...draft, certificate: ' ', issuer: '', labels: ' , ' };
  for (const selection of ['certificate', 'issuer', 'labels'] as const) {
    assert.equal(selectsAny({ ...draft, selection }), true, selection);
    assert.equal(selectsAny({ ...empty, selection }), false, selection);
  }
});

test('a replacement of one certificate suggests a compromised key as the reason', () => {
  assert.equal(usualReason('certificate'), 'key-compromised');
  assert.equal(usualReason('issuer'), 'superseded');
  assert.equal(usualReason('labels'), 'superseded');
});

test('the preview of a replacement lists certificates that require action first', () => {
  const affected = { version: 1, not_after: '', hosts: [], endpoints: [], api_keys: [] };
  const rows = [
    { ...affected, certificate: 'a', obstacle: null },
    { ...affected, certificate: 'b', obstacle: 'it is disabled' },
    { ...affected, certificate: 'c', obstacle: null },
  ];
  assert.deepEqual(
    byObstacle(rows).map(({ certificate }) => certificate),
    ['b', 'a', 'c'],
  );
});

const names: readonly (readonly [count: number, text: string])[] = [
  [0, ''],
  [1, 'w1'],
  [3, 'w1, w2, w3'],
  [4, 'w1, w2, w3 and 1 more'],
];

test('the preview of a replacement shows three names and counts the others', () => {
  for (const [count, text] of names) {
    assert.equal(fewNames(Array.from({ length: count }, (_, index) => `w${index + 1}`)), text);
  }
});

test('one certificate is counted in the singular', () => {
  assert.equal(certificateCount(1), '1 certificate');
  assert.equal(certificateCount(2000), '2,000 certificates');
});

test('the console has all states of the API for certificates of a replacement', () => {
  assert.deepEqual(replacedStates.toSorted(), certificateStates.toSorted());
});
