/** Orders from newOrder to the certificate, as the CA likes them and as it does not. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { findAccount } from '../../src/acme/accounts.ts';
import type { AcmeError } from '../../src/acme/acme-error.ts';
import { keyAuthorization } from '../../src/acme/challenge-answers.ts';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import {
  answerChallenge,
  deactivateAuthorization,
  fetchAuthorization,
  fetchOrder,
  finalizeOrder,
  newOrder,
  waitForAuthorization,
  waitForOrder,
} from '../../src/acme/orders.ts';
import { day } from '../../src/base/duration.ts';
import { realWorld, type World } from '../../src/base/world.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { certificateRequest } from '../../src/crypto/x509/certificate-request.ts';
import { identifier } from '../harness/ca/private-chain.ts';
import { http01At, type Override, problem } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  dnsNames,
  forever,
  impatientWorld,
  isAcmeError,
  issuedOrder,
  readyOrder,
  recordingWorld,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';
import { Refusal } from '../harness/ca/scripted-acme-jws.ts';

test('an order with DNS names, a wildcard and IP addresses results in a certificate for them', async (t) => {
  const { client, account } = await registered(t);
  const names = ['example.com', '*.example.com', 'www.example.org', '192.0.2.1', '2001:db8::1'];
  const { url, wanted, order } = await issuedOrder(client, account, ...names);
  assert.equal(order.authorizations.length, 5);
  const { leaf, chain } = await downloadCertificate(client, account, url, wanted, forever);
  assert.equal(chain.length, 1);
  const { subjectAltName = '' } = new X509Certificate(leaf);
  assert.match(subjectAltName, /DNS:\*\.example\.com.*IP Address:192\.0\.2\.1.*IP Address:2001:DB8/);
});

test('a renewal with valid authorizations takes six requests', async (t) => {
  const { ca, client, account } = await registered(t);
  await issuedOrder(client, account, 'example.com');
  const before = ca.requests.length;
  const { url, wanted } = await issuedOrder(client, account, 'example.com');
  await downloadCertificate(client, account, url, wanted, forever);
  assert.deepEqual(ca.kinds().slice(before), [
    'newOrder',
    'authorization',
    'order',
    'finalize',
    'order',
    'certificate',
  ]);
});

test('waitForOrder polls a processing order at growing intervals of up to 15 seconds', async (t) => {
  const { world, waits } = recordingWorld();
  const { client, account } = await registered(t, { processing: 9 }, world);
  const ready = await readyOrder(client, account, 'example.com');
  const csr = await certificateRequest([identifier('example.com')], await generatePrivateKey('ec256'));
  assert.equal((await finalizeOrder(client, account, ready, csr, forever)).status, 'processing');
  waits.length = 0;
  const order = await waitForOrder(client, account, ready.url, ['valid'], forever);
  assert.equal(order.status, 'valid');
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
});

test('waitForOrder obeys Retry-After in seconds or as a date, up to one minute', async (t) => {
  const now = Date.UTC(2026, 10, 21, 12);
  const { world, waits } = recordingWorld(now);
  const { ca, client, account } = await registered(t, { now: () => now }, world);
  const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  const processing =
    (value: string): Override =>
    async (_, usual) => {
      const { body } = await usual();
      return { body: { ...(body as object), status: 'processing' }, headers: { 'Retry-After': value } };
    };
  const values = [
    '7',
    'Sat, 21 Nov 2026 12:00:09 GMT',
    '0',
    'soon',
    '86400',
    'Fri, 20 Nov 2026 12:00:00 GMT',
  ];
  ca.override('order', ...values.map(processing));
  waits.length = 0;
  await waitForOrder(client, account, order.url, ['pending'], forever);
  assert.deepEqual(waits, [7000, 9000, 1000, 2000, 60_000, 8000]);
});

test('waitForOrder stops waiting when the signal aborts during a poll delay', async (t) => {
  const { ca, client, account } = await registered(t, { processing: Number.POSITIVE_INFINITY });
  const ready = await readyOrder(client, account, 'example.com');
  const csr = await certificateRequest([identifier('example.com')], await generatePrivateKey('ec256'));
  await finalizeOrder(client, account, ready, csr, forever);
  const stop = new AbortController();
  const asleep = Promise.withResolvers<void>();
  const sleep: World['sleep'] = (ms, signal) => {
    if (ms !== 15_000) return impatientWorld.sleep(ms, signal);
    asleep.resolve();
    return realWorld.sleep(day, signal);
  };
  const patient = clientOf(ca, { ...realWorld, sleep });
  const waiting = waitForOrder(patient, account, ready.url, ['valid'], stop.signal);
  await asleep.promise;
  stop.abort();
  await assert.rejects(waiting, isAcmeError('aborted'));
});

test("an order reports its own error, or else its failed authorization with its name and the CA's words", async (t) => {
  const validate = () =>
    new Refusal('dns', 'DNS problem: NXDOMAIN looking up TXT\u001b[31m', {
      subproblems: [
        {
          type: 'urn:ietf:params:acme:error:caa',
          detail: 'CAA forbids',
          identifier: { type: 'dns', value: 'a.test' },
        },
      ],
    });
  const { ca, client, account } = await registered(t, { validate });
  const order = await newOrder(client, account, { identifiers: dnsNames('*.example.com') }, forever);
  const [url = ''] = order.authorizations;
  const { challenges, wildcard } = await fetchAuthorization(client, account, url, forever);
  assert(wildcard && challenges[0]);
  await answerChallenge(client, account, challenges[0], forever);
  const sentence = '*.example.com: DNS problem: NXDOMAIN looking up TXT [31m (a.test: CAA forbids)';
  const failure = (error: AcmeError) => {
    assert.equal(error.message, sentence);
    assert.equal(error.type, 'dns');
    return isAcmeError('problem')(error);
  };
  await assert.rejects(waitForAuthorization(client, account, url, forever), failure);
  await assert.rejects(waitForOrder(client, account, order.url, ['ready'], forever), failure);
  const again = await waitForOrder(client, account, order.url, ['ready', 'invalid'], forever);
  assert.equal(again.status, 'invalid');
  const state = ca.state.orders.get(order.url);
  assert(state);
  state.error = { type: 'urn:ietf:params:acme:error:badCSR', detail: 'the key is weak' };
  await assert.rejects(
    waitForOrder(client, account, order.url, ['ready'], forever),
    (error: AcmeError) => isAcmeError('problem', /^the key is weak$/)(error) && error.type === 'badCSR',
  );
});

test('waitForOrder reports that the CA gave no reason for an invalid order', async (t) => {
  const { ca, client, account } = await registered(t);
  const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  const state = ca.state.orders.get(order.url);
  assert(state);
  state.ended = 'invalid';
  const silent = /the CA set the order to invalid without a reason/;
  await assert.rejects(
    waitForOrder(client, account, order.url, ['valid'], forever),
    isAcmeError('problem', silent),
  );
});

test('waitForAuthorization rejects a deactivated authorization', async (t) => {
  const { client, account } = await registered(t);
  const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  const [url = ''] = order.authorizations;
  await deactivateAuthorization(client, account, url, forever);
  await assert.rejects(
    waitForAuthorization(client, account, url, forever),
    isAcmeError('problem', /^example\.com: the CA set the authorization to deactivated/),
  );
});

test('waitForAuthorization keeps polling while a challenge is being validated', async (t) => {
  const gate = Promise.withResolvers<undefined>();
  const { ca, client, account } = await registered(t, { validate: () => gate.promise });
  const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  const [url = ''] = order.authorizations;
  const { challenges } = await fetchAuthorization(client, account, url, forever);
  assert(challenges[0]);
  await answerChallenge(client, account, challenges[0], forever);
  ca.override(
    'authorization',
    (_, usual) => usual(),
    (_, usual) => {
      gate.resolve(undefined);
      return usual();
    },
  );
  assert.equal((await waitForAuthorization(client, account, url, forever)).status, 'valid');
});

test('http-01 validation succeeds if the key authorization is published and fails otherwise', async (t) => {
  const answers = new Map<string, string>();
  const listener = createServer(({ url = '' }, response) => {
    response.end(answers.get(url.replace('/.well-known/acme-challenge/', '')) ?? 'nothing');
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    listener.close();
    listener.closeAllConnections();
  });
  const { port } = listener.address() as AddressInfo;
  const { client, account } = await registered(t, { validate: http01At(port), reuseAuthorizations: false });
  const validate = async (publish: boolean) => {
    const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
    const [url = ''] = order.authorizations;
    const { challenges } = await fetchAuthorization(client, account, url, forever);
    const challenge = challenges.find(({ type }) => type === 'http-01');
    assert(challenge?.token);
    if (publish) answers.set(challenge.token, await keyAuthorization(challenge.token, account.privateKey));
    await answerChallenge(client, account, challenge, forever);
    return waitForAuthorization(client, account, url, forever);
  };
  assert.equal((await validate(true)).status, 'valid');
  await assert.rejects(validate(false), isAcmeError('problem', /^example\.com: .*answered with nothing$/));
});

test('newOrder sends `replaces` only to CAs that support renewal information', async (t) => {
  for (const renewalInfo of [true, false]) {
    const { ca, client, account } = await registered(t, { renewalInfo });
    const order = await newOrder(
      client,
      account,
      { identifiers: dnsNames('example.com'), replaces: 'a.b' },
      forever,
    );
    assert.equal(order.replaces, renewalInfo ? 'a.b' : undefined);
    assert.equal(ca.requests.at(-1)?.signed?.payload?.replaces, renewalInfo ? 'a.b' : undefined);
  }
});

test('if the CA rejects `replaces`, the order is created without it', async (t) => {
  const { ca, client, account } = await registered(t);
  const request = { identifiers: dnsNames('example.com'), replaces: 'a.b' };
  const asked = () =>
    ca.requests.filter(({ kind }) => kind === 'newOrder').map(({ signed }) => signed?.payload?.replaces);
  await newOrder(client, account, request, forever);
  assert.equal((await newOrder(client, account, request, forever)).replaces, undefined);
  assert.deepEqual(asked(), ['a.b', 'a.b', undefined]);
  const refusals = [
    problem('malformed', 'could not parse ARI CertID'),
    problem('unauthorized', 'the account did not request the certificate being replaced'),
    problem('conflict', 'cannot be replaced'),
    problem('serverInternal', 'at least one identifier must match', { status: 500 }),
  ];
  for (const refusal of refusals) {
    ca.override('newOrder', refusal);
    assert.equal((await newOrder(client, account, request, forever)).replaces, undefined);
  }
});

test('newOrder is not retried without `replaces` if the CA rejects the order for another reason', async (t) => {
  const { ca, client, account } = await registered(t);
  const request = { identifiers: dnsNames('example.com'), replaces: 'a.b' };
  const refusals = ['rateLimited', 'accountDoesNotExist', 'rejectedIdentifier', 'userActionRequired', 'caa'];
  for (const type of refusals) {
    const before = ca.requests.length;
    ca.override('newOrder', problem(type, 'no'));
    await assert.rejects(
      newOrder(client, account, request, forever),
      (error: AcmeError) => error.type === type,
    );
    assert.equal(ca.requests.length, before + 1, type);
  }
  ca.override('newOrder', problem('serverInternal', 'no', { status: 503 }));
  await assert.rejects(newOrder(client, account, request, forever), isAcmeError('problem', /^no$/));
});

test('newOrder rejects an unknown profile, and an order created with another profile or none', async (t) => {
  const { ca, client, account } = await registered(t, {
    profiles: { classic: 'as always', shortlived: 'six days' },
  });
  const ask = (profile?: string) =>
    newOrder(client, account, { identifiers: dnsNames('example.com'), profile }, forever);
  assert.equal((await ask('shortlived')).profile, 'shortlived');
  const before = ca.requests.length;
  await assert.rejects(
    ask('tlsserver'),
    isAcmeError('protocol', /unknown profile tlsserver: .* offers classic, shortlived/),
  );
  assert.equal(ca.requests.length, before);
  const changed =
    (profile: string | undefined): Override =>
    async (_, usual) => {
      const { body, ...reply } = await usual();
      return { ...reply, body: { ...(body as object), profile } };
    };
  ca.override('newOrder', changed('classic'), changed(undefined));
  await assert.rejects(ask('shortlived'), isAcmeError('protocol', /created the order with profile classic/));
  await assert.rejects(ask('shortlived'), isAcmeError('protocol', /created the order without a profile/));
  assert.equal((await ask()).profile, undefined);
  const plain = await registered(t);
  await assert.rejects(
    newOrder(plain.client, plain.account, { identifiers: dnsNames('a.test'), profile: 'x' }, forever),
    isAcmeError('protocol', /offers no profiles/),
  );
});

test('newOrder reports accountDoesNotExist if the CA has deleted the account', async (t) => {
  const { ca, client, account } = await registered(t);
  ca.state.accounts.clear();
  const asking = newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  await assert.rejects(asking, (error: AcmeError) => error.type === 'accountDoesNotExist');
  assert.equal(await findAccount(client, account.privateKey, forever), undefined);
});

test('a dns-persist-01 challenge has an account URI and issuer domain names instead of a token', async (t) => {
  const { client, account } = await registered(t, { challengeTypes: ['dns-persist-01', 'unheard-of-01'] });
  const order = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  const { challenges } = await fetchAuthorization(client, account, order.authorizations[0] ?? '', forever);
  const [persist, other] = challenges;
  assert.equal(persist?.token, undefined);
  assert.match(persist?.accountUri ?? '', /\/account\//);
  assert.deepEqual(persist?.issuerDomainNames, ['ca.example', 'Also.example']);
  assert.equal(other?.type, 'unheard-of-01');
});

test('fetchOrder returns the URL, expiry and Retry-After of an order', async (t) => {
  const { ca, client, account } = await registered(t);
  const made = await newOrder(client, account, { identifiers: dnsNames('example.com') }, forever);
  ca.override('order', async (_, usual) => ({ ...(await usual()), headers: { 'Retry-After': '3' } }));
  const order = await fetchOrder(client, account, made.url, forever);
  assert.equal(order.url, made.url);
  assert.equal(order.retryAfterMs, 3000);
  assert((order.expires ?? 0) > Date.now());
  assert.equal(order.certificate, undefined);
});
