/** Certificates over HTTP with each of their chains, before and after the rotation of their CA. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { findIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { rotateCa } from '../../../src/domain/renewals/ca-rotation.ts';
import { AcmeTestClient, assertProblem, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';

const certificatesIn = (pem: string) =>
  pem.split(/(?<=-----END CERTIFICATE-----\n)/).map((block) => new X509Certificate(block));

const alternatesIn = (headers: Headers) =>
  [...(headers.get('Link') ?? '').matchAll(/<([^>]*)>;rel="alternate"/g)].map(([, url]) => url ?? '');

test('after a CA rotation, an alternate chain omits the link certificate to the former root', async (t) => {
  const server = await checkedServer(t);
  const watch = apiChecker(server.document);
  const external = await makeAcmeClient(server.vault);
  const client = await AcmeTestClient.registered(server.url, external, { watch });
  const before = await client.issue(['www.example.test']);
  assert.deepEqual(alternatesIn((await client.post(before.certificate)).headers), []);
  assertProblem(await client.post(`${before.certificate}/1`), 'malformed', 404);

  const issuer = await findIssuer(server.vault.db.reader, 'local-ca');
  assert(issuer);
  await rotateCa(server.vault, localCli, issuer);
  const { certificate } = await client.issue(['www.example.test']);
  const usual = await client.post(certificate);
  const [alternate = '', ...more] = alternatesIn(usual.headers);
  assert.deepEqual([alternate, more], [`${certificate}/1`, []]);
  const short = await client.post(alternate);
  assert.equal(short.status, 200, short.text);
  assert.deepEqual(alternatesIn(short.headers), [certificate]);

  const roots = certificatesIn(await (await server.get('/client/ca.crt')).text());
  const [former, current] = roots;
  assert(former && current);
  const [linked, unlinked] = [certificatesIn(usual.text), certificatesIn(short.text)];
  assert(usual.text.startsWith(short.text));
  assert.equal(linked.length, unlinked.length + 1);
  assert(unlinked.at(-1)?.verify(current.publicKey), 'the alternate chain ends below the new root');
  assert(linked.at(-1)?.verify(former.publicKey), 'the usual chain ends below the former root');

  for (const wrong of ['/0', '/2', '/01', '/x'])
    assertProblem(await client.post(`${certificate}${wrong}`), 'malformed', 404);
  const stranger = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault), { watch });
  assertProblem(await stranger.post(alternate), 'malformed', 404);
});
