/** The request bodies of the form for an endpoint: only what differs, and null for what is emptied. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  blankEndpoint,
  type EndpointDraft,
  endpointBody,
  endpointDraft,
} from '../../../assets/console/forms/endpoint-draft.ts';
import { endpoint } from '../fleet/endpoint.ts';

type Case = readonly [what: string, changes: Partial<EndpointDraft>, body: object];

const address = 'www.example.com:443';

const added: readonly Case[] = [
  ['only an address', { address: ` ${address} ` }, { address }],
  ['a certificate', { address, certificate: 'web' }, { address, certificate: 'web' }],
  ['a protocol', { address, starttls: 'smtp' }, { address, starttls: 'smtp' }],
  ['CA certificates', { address, trust: 'bundle', bundle: 'PEM' }, { address, ca_pem: 'PEM' }],
  ['a bundle without certificates', { address, trust: 'bundle' }, { address, ca_pem: '' }],
];

const before = endpointDraft(endpoint({ starttls: 'imap', server_name: 'mail', trust: 'bundle' }));

const changed: readonly Case[] = [
  ['nothing', {}, {}],
  ['no certificate', { certificate: ' ' }, { certificate: null }],
  ['no protocol', { starttls: '' }, { starttls: null }],
  ['no server name', { serverName: '' }, { server_name: null }],
  ['other CA certificates', { bundle: 'PEM' }, { ca_pem: 'PEM' }],
  ['another trust', { trust: 'public', bundle: 'PEM' }, { trust: 'public' }],
  ['an interval', { interval: '10m' }, { interval: '10m' }],
];

suite('the form of an endpoint', () => {
  for (const [what, changes, body] of added)
    test(`an endpoint with ${what} sends ${JSON.stringify(body)}`, () =>
      assert.deepEqual(endpointBody({ ...blankEndpoint, ...changes }), body));

  for (const [what, changes, body] of changed)
    test(`a change to ${what} sends ${JSON.stringify(body)}`, () =>
      assert.deepEqual(endpointBody({ ...before, ...changes }, before), body));
});
