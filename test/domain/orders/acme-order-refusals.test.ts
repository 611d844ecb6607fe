/**
 * Orders that a CA refuses or answers with the wrong certificate: what people read of it, and that nothing is stored.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { second } from '../../../src/base/duration.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { makeChain, makeLeaf } from '../../harness/ca/private-chain.ts';
import { problem } from '../../harness/ca/scripted-acme.ts';
import { fails, issuesOnce } from '../../harness/issuance/engine-outcomes.ts';
import { engine } from '../../harness/issuance/engine-vault.ts';

test('an alreadyReplaced error is followed by an order without replaces', async (t) => {
  const opened = await engine(t);
  const { vault, ca, work } = opened;
  await issuesOnce(opened);
  ca.override('newOrder', problem('alreadyReplaced', 'done already'));
  await requestRenewal(vault, localCli, 'www');
  assert.equal((await work()).status, 'succeeded');
  const asked = ca.requests
    .filter(({ kind }) => kind === 'newOrder')
    .map(({ signed }) => signed?.payload?.replaces);
  assert.equal(asked.length, 3);
  assert.equal([...ca.state.orders.values()].at(-1)?.replaces, undefined);
});

test('a certificate for another key and one with an unrelated chain are rejected', async (t) => {
  const chain = await makeChain();
  const other = await makeChain();
  const pem = (...ders: readonly Buffer[]) => ders.map((der) => encodePem('CERTIFICATE', der)).join('');
  const headers = { 'Content-Type': 'application/pem-certificate-chain' };
  const leaf = await makeLeaf(chain.intermediate, { identifiers: ['www.example.test' as never] });
  const opened = await engine(t);
  opened.ca.overrideAll('certificate', {
    headers,
    body: pem(leaf.certificate, chain.intermediate.certificate),
  });
  await fails(opened, /key/);
  const second = await engine(t);
  second.ca.override('certificate', async (_, usual) => {
    const end = '-----END CERTIFICATE-----\n';
    const [own] = String((await usual()).body).split(end);
    return { headers, body: own + end + pem(other.intermediate.certificate) };
  });
  await fails(second, /chain|signed|issued/);
});

test('an invalid order fails with the error of each identifier', async (t) => {
  const opened = await engine(t, {
    processing: 5,
    certificate: { domains: ['a.example.test', 'b.example.test'] },
  });
  const { ca } = opened;
  const of = (value: string, detail: string) => ({
    type: 'urn:ietf:params:acme:error:caa',
    detail,
    identifier: { type: 'dns', value },
  });
  ca.override('finalize', async (_, usual) => {
    const reply = await usual();
    const [order] = ca.state.orders.values();
    assert(order);
    order.ended = 'invalid';
    order.error = {
      type: 'urn:ietf:params:acme:error:compound',
      detail: 'Errors during issuance',
      subproblems: [of('a.example.test', 'CAA forbids it'), of('b.example.test', 'no CAA answer')],
    };
    return reply;
  });
  await fails(
    opened,
    /^Errors during issuance \(a\.example\.test: CAA forbids it; b\.example\.test: no CAA answer\)$/,
  );
});

test('a userActionRequired error includes the URL to visit', async (t) => {
  const opened = await engine(t);
  const instance = 'https://ca.example/terms/2';
  opened.ca.override(
    'newOrder',
    problem('userActionRequired', 'The terms have changed', { members: { instance } }),
  );
  await fails(opened, /^The terms have changed Visit https:\/\/ca\.example\/terms\/2$/);
});

test('a connection cut at newOrder fails the attempt within a second', async (t) => {
  const opened = await engine(t);
  const { ca, world } = opened;
  const cut = { cutAfter: 0 };
  ca.override('newOrder', cut);
  const before = world.now();
  await fails(opened, /127\.0\.0\.1/);
  assert(world.now() - before < second);
});
