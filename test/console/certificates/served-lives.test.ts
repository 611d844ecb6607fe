/** The rows of the picture of what the endpoints of a certificate serve. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { servedLives } from '../../../assets/console/certificates/served-lives.ts';
import type { Certificate, Version } from '../../../assets/console/data/shapes.ts';
import { endpoint } from '../fleet/endpoint.ts';

const now = Date.parse('2026-11-29T00:00:00Z');
const version = { version: 2, fingerprint_sha256: 'ab', not_before: '2026-11-01T00:00:00Z' };
const certificate = {
  current_version: { ...version, not_after: '2027-01-30T00:00:00Z' } as Version,
  renewal: { next_at: '2027-01-01T00:00:00Z' } as Certificate['renewal'],
};
const old = { version: 1, fingerprint_sha256: 'cd', not_after: '2026-12-15T00:00:00Z' };
const foreign = { version: null, fingerprint_sha256: 'ef', names: ['elsewhere.example'] };

const shown = (...endpoints: Parameters<typeof endpoint>[0][]) =>
  servedLives(
    certificate,
    endpoints.map((one) => endpoint(one)),
    now,
  ).map(({ name, health, endpoints: by }) => [name, health, by.join()]);

suite('the picture of served certificates', () => {
  test('the current version has a row even if no endpoint serves it', () => {
    assert.deepEqual(shown(), [['Version 2', 'good', '']]);
    assert.equal(servedLives(certificate, [], now)[0]?.renewAt, Date.parse('2027-01-01T00:00:00Z'));
  });

  test('endpoints with the same certificate share a row, and other certificates have one each', () =>
    assert.deepEqual(
      shown(
        { address: 'a:443' },
        { address: 'b:443', ...old },
        { address: 'c:443' },
        { address: 'd:443', ...foreign },
        { address: 'e:443', ...foreign, fingerprint_sha256: '01' },
      ),
      [
        ['Version 2', 'good', 'a:443,c:443'],
        ['Version 1', 'warning', 'b:443'],
        ['Another certificate', 'bad', 'd:443'],
        ['Another certificate (2)', 'bad', 'e:443'],
      ],
    ));

  test('an expired version that is still served is broken', () =>
    assert.deepEqual(shown({ address: 'a:443', ...old, not_after: '2026-11-28T00:00:00Z' }).at(-1), [
      'Version 1',
      'bad',
      'a:443',
    ]));

  test('an endpoint that is unreachable or unchecked serves nothing', () =>
    assert.deepEqual(
      shown({ ...old, state: 'unreachable' }, { fingerprint_sha256: null, state: 'unchecked' }),
      [['Version 2', 'good', '']],
    ));
});
