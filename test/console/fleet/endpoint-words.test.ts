/** Endpoints in words: what they serve, how the vault connects, and why they have their state. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Endpoint } from '../../../assets/console/data/shapes.ts';
import { endpointReason, handshakeText, servedText } from '../../../assets/console/fleet/endpoint-words.ts';
import { endpoint } from './endpoint.ts';

type Case = readonly [what: string, changes: Partial<Endpoint>, text: string | undefined];

const nothing = { fingerprint_sha256: null, version: null, names: [] };
const other = { version: null, fingerprint_sha256: 'cd', state: 'unknown' } as const;

const served: readonly Case[] = [
  ['the current version', {}, '2'],
  ['an older version', { version: 1 }, '1, current: 2'],
  ['nothing so far', nothing, '—'],
  [
    'a certificate from elsewhere',
    { ...other, names: ['a.example', 'b.example'] },
    'another: a.example and 1 more',
  ],
  ['a certificate that is only watched', { ...other, certificate: null, names: ['a.example'] }, 'a.example'],
  ['a certificate without names', { ...other, names: [] }, 'another: without a name'],
];

const handshakes: readonly Case[] = [
  ['the host as the server name', {}, 'TLS'],
  ['another server name', { server_name: 'example.com' }, 'TLS, server name example.com'],
  ['no server name', { server_name: '' }, 'TLS, no server name'],
  [
    'a host that only begins with the server name',
    { address: 'example.com.internal:443', server_name: 'example.com' },
    'TLS, server name example.com',
  ],
  [
    'a mail server',
    { address: 'mx1.example.com:25', server_name: 'mail.example.com', starttls: 'smtp' },
    'STARTTLS in SMTP, server name mail.example.com',
  ],
];

const reasons: readonly Case[] = [
  ['serves the current version', {}, undefined],
  ['is not checked yet', { ...nothing, state: 'unchecked', reason: 'not checked yet' }, undefined],
  ['expires soon', { state: 'expiring', reason: 'expires at 2026-12-01T00:00:00Z' }, undefined],
  [
    'serves an older version for too long',
    { state: 'outdated', version: 1, reason: 'version 1 instead of 2' },
    'Version 1 instead of 2',
  ],
  ['serves the version before a recent renewal', { version: 1 }, 'New version not served yet'],
  ['failed one check', { error: 'connection refused' }, 'Last check failed: connection refused'],
];

suite('the words of endpoints', () => {
  for (const [what, changes, text] of served)
    test(`an endpoint with ${what} serves ${JSON.stringify(text)}`, () =>
      assert.equal(servedText(endpoint(changes)), text));

  for (const [what, changes, text] of handshakes)
    test(`the handshake with ${what} is ${JSON.stringify(text)}`, () =>
      assert.equal(handshakeText(endpoint(changes)), text));

  for (const [what, changes, text] of reasons)
    test(`an endpoint that ${what} has the reason ${JSON.stringify(text)}`, () =>
      assert.equal(endpointReason(endpoint(changes)), text));
});
