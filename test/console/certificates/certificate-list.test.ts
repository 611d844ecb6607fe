/** Search, filters and sorting of the list of certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  filteredAndSorted,
  issuersOf,
  labelsOf,
} from '../../../assets/console/certificates/certificate-list.ts';
import type { Certificate } from '../../../assets/console/data/shapes.ts';

function certificate(
  name: string,
  given: Partial<Certificate> & { expires?: string; error?: string } = {},
): Certificate {
  const { expires = '2027-01-01T00:00:00Z', error = null, ...rest } = given;
  const version = {
    not_after: expires,
    created_at: '2026-06-01T00:00:00Z',
  } as Certificate['current_version'];
  return {
    ...{
      name,
      labels: [],
      domains: [`${name}.example.com`],
      key_type: 'ec256',
      issuer: 'local-ca',
      status: 'valid',
    },
    ...{
      auto_renew: true,
      owner: null,
      uris: [],
      emails: [],
      key_holder: 'vault',
      created_at: '2026-01-01T00:00:00Z',
      artifacts: [],
      current_version: version,
    },
    renewal: { next_at: null, last_error: error, last_attempt_at: null },
    ...rest,
  };
}

const all = [
  certificate('www', { expires: '2027-03-01T00:00:00Z' }),
  certificate('mail', { issuer: null, domains: ['MX.example.org'] }),
  certificate('old', { status: 'expired', expires: '2026-01-01T00:00:00Z' }),
  certificate('stuck', { error: 'The CA refused.', expires: '2027-02-01T00:00:00Z' }),
  certificate('new', { status: 'pending', current_version: null }),
];
const any = { search: '', status: '', issuer: '', sort: 'name' };
const names = (filter: Partial<typeof any>) =>
  filteredAndSorted(all, { ...any, ...filter }).map(({ name }) => name);

test('a search matches parts of names and domains, ignores case, and requires all words', () => {
  assert.deepEqual(names({ search: 'WW' }), ['www']);
  assert.deepEqual(names({ search: 'mx.example' }), ['mail']);
  assert.deepEqual(names({ search: 'old example.com' }), ['old']);
  assert.deepEqual(names({ search: 'old nowhere' }), []);
});

test('a search finds the certificates of an ACME client by its name', () => {
  const owned = certificate('printer', { owner: { id: 1, name: 'Office' } });
  const found = filteredAndSorted([...all, owned], { ...any, search: 'office' });
  assert.deepEqual(
    found.map(({ name }) => name),
    ['printer'],
  );
});

test('the list filters by status, failed renewal and issuer, including none for imported certificates', () => {
  assert.deepEqual(names({ status: 'expired' }), ['old']);
  assert.deepEqual(names({ status: 'failing' }), ['stuck']);
  assert.deepEqual(names({ issuer: '-' }), ['mail']);
  assert.deepEqual(issuersOf(all), ['-', 'local-ca']);
});

test('certificates that need attention come first, then those that expire sooner', () => {
  assert.deepEqual(names({ sort: 'trouble' }), ['old', 'stuck', 'mail', 'www', 'new']);
  assert.deepEqual(names({ sort: 'expiry' }), ['old', 'mail', 'stuck', 'www', 'new']);
  assert.deepEqual(names({ sort: 'name' }), ['mail', 'new', 'old', 'stuck', 'www']);
});

test('a label filters by its whole text, and the search finds parts of it', () => {
  const labelled = [certificate('a', { labels: ['team=web'] }), certificate('b', { labels: ['team=web2'] })];
  const named = (label: string, search = '') =>
    filteredAndSorted(labelled, { search, status: '', issuer: '', label, sort: 'name' }).map(
      ({ name }) => name,
    );
  assert.deepEqual(named('team=web'), ['a']);
  assert.deepEqual(named('', 'team=web'), ['a', 'b']);
  assert.deepEqual(labelsOf(labelled), ['team=web', 'team=web2']);
});

test('the list filters by group and by the week of the expiry, and a certificate without a version is in no week', () => {
  const now = Date.parse('2026-12-09T12:00:00Z');
  const found = (filter: { group?: string; week?: string }) =>
    filteredAndSorted(all, { ...any, ...filter, now }).map(({ name }) => name);
  assert.deepEqual(found({ group: 'failing' }), ['stuck']);
  assert.deepEqual(found({ group: 'healthy' }), ['mail', 'www']);
  assert.deepEqual(found({ group: 'inactive' }), ['new']);
  assert.deepEqual(found({ week: 'expired' }), ['old']);
  assert.deepEqual(found({ week: '2026-12-28' }), ['mail']);
  assert.deepEqual(found({ week: '2027-01-04..' }), ['stuck', 'www']);
  assert.deepEqual(found({ week: '2027-01-04..', group: 'healthy' }), ['www']);
});
