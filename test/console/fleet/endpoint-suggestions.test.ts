/** The endpoints that the console suggests from the names of a certificate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suggestionsFor } from '../../../assets/console/fleet/endpoint-suggestions.ts';
import { usualPort } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { startTlsProtocols } from '../../../src/net/starttls.ts';

test('each name suggests the port of its protocol, except wildcards and names that have an endpoint', () => {
  const domains = [
    'www.example.com',
    '*.example.com',
    'mx1.example.com',
    'imap.example.com',
    'mail.example.com',
  ];
  const known = [{ address: 'www.example.com:443' }, { address: 'imap.example.com:993' }];
  assert.deepEqual(suggestionsFor(domains, known), [
    { address: 'mx1.example.com:25', starttls: 'smtp' },
    { address: 'imap.example.com:143', starttls: 'imap' },
    { address: 'mail.example.com:443', starttls: null },
  ]);
});

test('addresses suggest no protocol, and IPv6 ones have brackets', () =>
  assert.deepEqual(suggestionsFor(['192.0.2.7', '2001:db8::1'], []), [
    { address: '192.0.2.7:443', starttls: null },
    { address: '[2001:db8::1]:443', starttls: null },
  ]));

test('each suggested protocol has the port that the vault uses for it', () => {
  const names = ['smtp', 'imap', 'pop', 'ldap', 'ftp', 'xmpp', 'postgres', 'mysql'];
  const found = suggestionsFor(
    names.map((name) => `${name}.example.com`),
    [],
  );
  assert.deepEqual(
    found.map(({ starttls }) => starttls),
    startTlsProtocols,
  );
  for (const { address, starttls } of found) assert(address.endsWith(`:${usualPort(starttls)}`), address);
});
