/** Orders that replace a certificate (RFC 9773 §5). */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { AcmeTestClient, assertProblem, csrFor, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';

const names = ['www.example.test'];

test('a certificate is replaced by one order only, unless an authorization of that order was deactivated', async (t) => {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault);
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  const { pem } = await client.issue(names);
  const replaces = renewalInfoId(new X509Certificate(pem).raw) ?? '';
  const given = await client.order(names, { replaces });
  assert.equal(given.json.replaces, replaces, given.text);
  assertProblem(await client.order(names, { replaces }), 'alreadyReplaced', 409);
  await client.post(given.json.authorizations[0], { status: 'deactivated' });
  const again = await client.order([...names, 'a.example.test'], { replaces });
  assert.equal(again.status, 201, again.text);
  const csr = await csrFor([...names, 'a.example.test']);
  assert.equal((await client.post(again.json.finalize, { csr })).json.status, 'valid');
  assertProblem(await client.order(names, { replaces }), 'alreadyReplaced', 409);
});

test('three concurrent orders replace a certificate once', async (t) => {
  const server = await checkedServer(t);
  const client = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault));
  const replaces = renewalInfoId(new X509Certificate((await client.issue(names)).pem).raw) ?? '';
  const answers = await Promise.all([1, 2, 3].map(() => client.order(names, { replaces })));
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409]);
});

test('an order is rejected if it replaces a certificate of another client, with other names or with an invalid id', async (t) => {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const client = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
  const other = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
  const { pem } = await client.issue(names);
  const replaces = renewalInfoId(new X509Certificate(pem).raw) ?? '';
  const [authority = '', serial = ''] = replaces.split('.');
  const longer = Buffer.concat([Buffer.of(0), Buffer.from(serial, 'base64url')]).toString('base64url');
  assertProblem(await other.order(names, { replaces }), 'malformed', 400);
  assertProblem(await client.order(['a.example.test'], { replaces }), 'malformed', 400);
  for (const bad of [
    '',
    'x',
    `${replaces}.`,
    `${replaces}=`,
    `${serial}.${authority}`,
    `${authority}.${longer}`,
    'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE',
  ]) {
    assertProblem(await client.order(names, { replaces: bad }), 'malformed', 400);
  }
});
