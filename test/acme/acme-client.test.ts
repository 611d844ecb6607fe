/** How requests are sent: nonces, the directory, invalid responses, and unconfigured hosts. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { findAccount, registerAccount } from '../../src/acme/accounts.ts';
import { AcmeClient } from '../../src/acme/acme-client.ts';
import type { AcmeError } from '../../src/acme/acme-error.ts';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import { fetchAuthorization, fetchOrder, newOrder } from '../../src/acme/orders.ts';
import { revokeCertificate } from '../../src/acme/revocation.ts';
import { hour } from '../../src/base/duration.ts';
import { type KeyType, keyTypes } from '../../src/base/key-type.ts';
import { silentLog } from '../../src/base/log.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { type Override, problem, type ScriptedReply, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  dnsNames,
  forever,
  impatientWorld,
  isAcmeError,
  issuedOrder,
  recordingWorld,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

const example = { identifiers: dnsNames('example.com') };

test('the directory is read with its URLs, terms of service, profiles and externalAccountRequired', async (t) => {
  const ca = await scriptedAcme(t, {
    termsOfService: 'https://ca.test/terms',
    profiles: { classic: 'as always' },
    externalAccounts: {},
  });
  const directory = await clientOf(ca).directory(forever);
  assert.deepEqual(directory, {
    newNonce: `${ca.origin}/new-nonce`,
    newAccount: `${ca.origin}/new-account`,
    newOrder: `${ca.origin}/new-order`,
    revokeCert: `${ca.origin}/revoke-cert`,
    keyChange: `${ca.origin}/key-change`,
    renewalInfo: `${ca.origin}/renewal-info`,
    termsOfService: 'https://ca.test/terms',
    website: undefined,
    externalAccountRequired: true,
    profiles: { classic: 'as always' },
  });
});

test('a directory with only the required URLs is accepted, and malformed meta is ignored', async (t) => {
  const ca = await scriptedAcme(t);
  const [newNonce, newAccount, newOrder] = ['a', 'b', 'c'].map((path) => `${ca.origin}/${path}`);
  for (const meta of [undefined, 'odd', { profiles: [], termsOfService: 7, website: 'no URL' }]) {
    ca.override('directory', { body: { newNonce, newAccount, newOrder, meta } });
    const directory = await clientOf(ca).directory(forever);
    assert.equal(directory.newOrder, newOrder);
    assert.equal(directory.renewalInfo, undefined);
    assert.deepEqual(directory.profiles, {});
    assert.equal(directory.termsOfService, undefined);
  }
});

test('the terms of service URL of a directory is escaped for terminals and truncated', async (t) => {
  const ca = await scriptedAcme(t);
  const [newNonce, newAccount, newOrder] = ['a', 'b', 'c'].map((path) => `${ca.origin}/${path}`);
  const pages: readonly (readonly [named: string, shown: RegExp])[] = [
    ['https://ca.test/terms', /^https:\/\/ca\.test\/terms$/],
    ['https://ca.test/\u001b[2Jgone', /^https:\/\/ca\.test\/%1B\[2Jgone$/],
    ['javascript:alert(1)\u0007\u202e', /^javascript:alert\(1\)[\x21-\x7e]*$/],
    [`https://ca.test/${'x'.repeat(100_000)}`, /^https:\/\/ca\.test\/x{1000,2000}…$/],
  ];
  for (const [termsOfService, shown] of pages) {
    ca.override('directory', { body: { newNonce, newAccount, newOrder, meta: { termsOfService } } });
    assert.match((await clientOf(ca).directory(forever)).termsOfService ?? '', shown);
  }
});

test('the directory is cached for an hour, shared by concurrent callers, and refetched after an HTTP 500', async (t) => {
  const ca = await scriptedAcme(t);
  let now = 0;
  const client = clientOf(ca, { ...impatientWorld, elapsed: () => now });
  const fetched = async () => {
    await client.directory(forever);
    return ca.kinds().filter((kind) => kind === 'directory').length;
  };
  await Promise.all([client.directory(forever), client.directory(forever), client.directory(forever)]);
  assert.equal(await fetched(), 1);
  now += hour - 1;
  assert.equal(await fetched(), 1);
  now += 1;
  assert.equal(await fetched(), 2);
  ca.override('renewalInfo', { status: 500 });
  await assert.rejects(client.get(`${ca.origin}/renewal-info/a.b`, forever), isAcmeError('protocol', /500/));
  assert.equal(await fetched(), 3);
  await assert.rejects(client.get(`${ca.origin}/renewal-info/a.b`, forever), isAcmeError('problem'));
  assert.equal(await fetched(), 3);
});

test('the directory is refetched after newOrder fails with HTTP 404, but not with HTTP 400', async (t) => {
  const { ca, client, account } = await registered(t);
  const fetched = () => ca.kinds().filter((kind) => kind === 'directory').length;
  const before = fetched();
  ca.override('newOrder', problem('malformed', 'Not here any more', { status: 404 }));
  await assert.rejects(newOrder(client, account, example, forever), isAcmeError('problem', /Not here/));
  await newOrder(client, account, example, forever);
  assert.equal(fetched(), before + 1);
  ca.override('newOrder', problem('rejectedIdentifier', 'no', { status: 400 }));
  await assert.rejects(newOrder(client, account, example, forever), isAcmeError('problem'));
  await newOrder(client, account, example, forever);
  assert.equal(fetched(), before + 1, 'a refusal says nothing about the directory');
});

test('callers that share a directory download abort independently of each other', async (t) => {
  const ca = await scriptedAcme(t);
  const client = clientOf(ca);
  const gate = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  ca.override('directory', async (_, usual) => {
    arrived.resolve();
    return { ...(await usual()), until: gate.promise };
  });
  const [first, second] = [new AbortController(), new AbortController()];
  const fetching = client.directory(first.signal);
  const impatient = client.directory(second.signal);
  const patient = client.directory(forever);
  await arrived.promise;
  second.abort();
  await assert.rejects(impatient, isAcmeError('aborted'));
  first.abort();
  await assert.rejects(fetching, isAcmeError('aborted'));
  assert.equal((await patient).newOrder, `${ca.origin}/new-order`);
  gate.resolve();
});

test('concurrent callers share a failed directory download', async (t) => {
  const ca = await scriptedAcme(t);
  const client = clientOf(ca);
  ca.override('directory', { status: 503, headers: { 'Retry-After': '9' } });
  const all = await Promise.allSettled(Array.from({ length: 5 }, () => client.directory(forever)));
  for (const one of all) assert.equal(one.status === 'rejected' && one.reason.retryAfterMs, 9000);
  assert.equal(ca.requests.length, 1);
});

test('newAccount is signed with the JWS algorithm of the key type', async (t) => {
  const ca = await scriptedAcme(t);
  const algorithms: Readonly<Record<KeyType, string>> = {
    ec256: 'ES256',
    ec384: 'ES384',
    rsa2048: 'RS256',
    rsa3072: 'RS256',
    rsa4096: 'RS256',
    ed25519: 'EdDSA',
  };
  // A key of rsa4096 takes seconds to make, and signs like those of rsa3072.
  for (const type of keyTypes.filter((one) => one !== 'rsa4096')) {
    const privateKey = await generatePrivateKey(type);
    const wanted = { privateKey, email: undefined, externalAccount: undefined, termsAgreed: true };
    const account = await registerAccount(clientOf(ca), wanted, forever);
    assert.equal(account.status, 'valid');
    assert.equal(ca.requests.at(-1)?.signed?.header.alg, algorithms[type]);
  }
});

test('newNonce is requested only once if every response carries a nonce', async (t) => {
  const { ca, client, account } = await registered(t);
  for (let count = 0; count < 5; count++) await newOrder(client, account, example, forever);
  assert.equal(ca.kinds().filter((kind) => kind === 'newNonce').length, 1);
});

test('newNonce is requested before each order if responses carry no nonce', async (t) => {
  const { ca, client, account } = await registered(t, { fewNonces: true });
  for (let count = 0; count < 3; count++) await newOrder(client, account, example, forever);
  assert.deepEqual(ca.kinds().slice(-4), ['newNonce', 'newOrder', 'newNonce', 'newOrder']);
});

test('concurrent requests never reuse a nonce', async (t) => {
  const { ca, client, account } = await registered(t);
  const names = Array.from({ length: 40 }, (_, number) => `n${number}.example.com`);
  const orders = await Promise.all(
    names.map((name) => newOrder(client, account, { identifiers: dnsNames(name) }, forever)),
  );
  assert.equal(new Set(orders.map(({ url }) => url)).size, 40);
  assert(ca.requests.every(({ status = 0 }) => status < 300));
});

test('a request rejected with badNonce is retried up to 20 times with the nonce of the rejection', async (t) => {
  const { ca, client, account } = await registered(t);
  const before = ca.requests.length;
  const refusal = problem('badNonce', 'try again');
  ca.override('newOrder', ...Array.from({ length: 20 }, () => refusal));
  await newOrder(client, account, example, forever);
  assert.deepEqual(
    ca.kinds().slice(before),
    Array.from({ length: 21 }, () => 'newOrder'),
  );
});

test('a request fails with badNonce after 21 attempts', async (t) => {
  const { ca, client, account } = await registered(t);
  const before = ca.requests.length;
  ca.overrideAll('newOrder', problem('badNonce', 'never'));
  const failure = (error: AcmeError) => error.type === 'badNonce' && isAcmeError('problem', /^never$/)(error);
  await assert.rejects(newOrder(client, account, example, forever), failure);
  assert.equal(ca.requests.length, before + 21);
});

test('a newNonce response with an empty or invalid Replay-Nonce header is rejected', async (t) => {
  const ca = await scriptedAcme(t);
  const key = await generatePrivateKey('ec256');
  for (const nonce of ['', 'white space', 'semi;colon', 'x'.repeat(600)]) {
    ca.override('newNonce', { headers: { 'Replay-Nonce': nonce } });
    await assert.rejects(
      findAccount(clientOf(ca), key, forever),
      isAcmeError('protocol', /no Replay-Nonce header/),
    );
  }
});

test('errors for HTTP 429 and 503 carry the Retry-After given in seconds or as a date', async (t) => {
  const now = Date.UTC(2026, 10, 21, 12);
  const { ca, client, account } = await registered(t, { now: () => now }, recordingWorld(now).world);
  const ask = () => newOrder(client, account, example, forever);
  const cases: readonly [string | undefined, number | undefined][] = [
    ['120', 120_000],
    ['Sat, 21 Nov 2026 12:05:00 GMT', 300_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
    ['99999999999', 7 * 24 * hour],
    ['in a while', undefined],
    [undefined, undefined],
  ];
  for (const [value, expected] of cases) {
    const headers: Record<string, string> = value === undefined ? {} : { 'Retry-After': value };
    ca.override(
      'newOrder',
      problem('rateLimited', 'too many certificates already issued', { headers }),
      { status: 503, headers, body: '<h1>maintenance</h1>' },
      problem('serverInternal', 'The service is down for maintenance', { status: 503, headers }),
    );
    const limited = (error: AcmeError) => {
      assert.equal(error.type, 'rateLimited');
      assert.equal(error.status, 429);
      assert.equal(error.retryAfterMs, expected);
      return isAcmeError('problem', /^too many certificates already issued$/)(error);
    };
    const down = (error: AcmeError) => error.retryAfterMs === expected && error.status === 503;
    await assert.rejects(ask(), limited);
    await assert.rejects(ask(), (error: AcmeError) => down(error) && isAcmeError('protocol', /503/)(error));
    await assert.rejects(ask(), (error: AcmeError) => down(error) && isAcmeError('problem')(error));
  }
});

const html = { 'Content-Type': 'text/html' };
const json = { 'Content-Type': 'application/json' };
const doc = { 'Content-Type': 'application/problem+json' };

/** What is no answer, and what the error must say of it. */
const wrongAnswers: readonly [string, ScriptedReply, RegExp][] = [
  ['text in place of JSON', { body: 'hello', headers: json }, /invalid or incomplete JSON/],
  ['truncated JSON', { body: '{"status":"va', headers: json }, /invalid or incomplete JSON/],
  ['an empty body', { body: '', headers: json }, /invalid or incomplete JSON/],
  ['a JSON array', { body: [] }, /an invalid one: the response must be an object/],
  ['JSON without required members', { body: {} }, /an invalid one: newNonce is missing|an invalid one: /],
  ['null', { body: 'null', headers: json }, /an invalid one/],
  ['an HTML page', { body: '<html>', headers: html }, /got text\/html/],
  ['a body without a content type', { body: '{}' }, /without a content type/],
  ['a problem document with HTTP 200', { body: '{}', headers: doc }, /got application\/problem\+json/],
  ['a body of more than 1 MiB', { body: 'x'.repeat(1_100_000), headers: json }, /larger than 1048576 bytes/],
  ['a redirect', { status: 302, headers: { Location: '/elsewhere' } }, /redirect \(302\).*not followed/],
  ['a permanent redirect', { status: 308, headers: { Location: '/' } }, /redirect \(308\)/],
  ['HTTP 304', { status: 304 }, /redirect \(304\)/],
  [
    'HTTP 500 without a problem document',
    { status: 500, body: 'oops' },
    /responded with HTTP status 500 and no reason/,
  ],
  ['an HTML page with HTTP 404', { status: 404, headers: html, body: '<h1>' }, /HTTP status 404/],
  [
    'a truncated problem document',
    { status: 400, headers: doc, body: '{"type":' },
    /HTTP status 400 and an unreadable problem document/,
  ],
  ['a problem document that is a JSON array', { status: 400, headers: doc, body: '[]' }, /unreadable/],
];

for (const [title, reply, message] of wrongAnswers) {
  test(`every request rejects ${title} with a protocol error`, async (t) => {
    const { ca, client, account } = await registered(t);
    const { order, url, wanted } = await issuedOrder(client, account, 'example.com');
    const fresh = clientOf(ca);
    const steps = {
      directory: () => fresh.directory(forever),
      newAccount: () => findAccount(client, account.privateKey, forever),
      newOrder: () => newOrder(client, account, example, forever),
      order: () => fetchOrder(client, account, order.url, forever),
      authorization: () => fetchAuthorization(client, account, order.authorizations[0] ?? '', forever),
      certificate: () => downloadCertificate(client, account, url, wanted, forever),
    } as const;
    for (const [kind, step] of Object.entries(steps)) {
      ca.override(kind as keyof typeof steps, reply);
      const isCertificate = kind === 'certificate' && (reply.status ?? 200) === 200;
      await assert.rejects(step(), isAcmeError('protocol', isCertificate ? /./ : message));
      // It is over with that: the next time goes well.
      await step();
    }
  });
}

test('a JSON content type with a charset and capital letters is accepted', async (t) => {
  const ca = await scriptedAcme(t);
  ca.override('directory', async (_, usual) => {
    return { ...(await usual()), headers: { 'Content-Type': 'Application/JSON; charset=utf-8' } };
  });
  await clientOf(ca).directory(forever);
});

test('an order or account without a valid Location header is rejected; a relative Location is resolved', async (t) => {
  const { ca, client, account } = await registered(t);
  const located =
    (location: string | undefined): Override =>
    async (_, usual) => {
      const { headers, ...reply } = await usual();
      const { Location, ...others } = headers ?? {};
      return { ...reply, headers: { ...others, ...(location !== undefined && { Location: location }) } };
    };
  for (const [kind, step] of [
    ['newOrder', () => newOrder(client, account, example, forever)],
    ['newAccount', () => findAccount(client, account.privateKey, forever)],
  ] as const) {
    ca.override(kind, located(undefined), located('http://'), located('/there/1'));
    for (let count = 0; count < 2; count++) {
      await assert.rejects(step(), isAcmeError('protocol', /a response without a Location header/));
    }
    assert.equal((await step())?.url, `${ca.origin}/there/1`);
  }
});

test('no request goes to a host, port or scheme that is not configured', async (t) => {
  const { ca, client, account } = await registered(t);
  const { order, url, wanted } = await issuedOrder(client, account, 'example.com');
  let contacts = 0;
  const stranger = createServer((_, response) => response.end()).on('connection', () => contacts++);
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  t.after(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const elsewhere = `http://127.0.0.1:${port}/x`;
  const { port: own } = new URL(ca.origin);
  const strangers = [
    elsewhere,
    `http://localhost:${port}/x`,
    `http://127.0.0.1:${own}@127.0.0.1:${port}/x`,
    `http://user:password@127.0.0.1:${own}/new-order`,
    `https://127.0.0.1:${own}/x`,
    'ftp://127.0.0.1/x',
    'file:///etc/passwd',
  ];
  const before = ca.requests.length;
  for (const target of strangers) {
    const asking = [
      fetchOrder(client, account, target, forever),
      fetchAuthorization(client, account, target, forever),
      downloadCertificate(client, account, target, wanted, forever),
    ];
    for (const one of asking) {
      await assert.rejects(
        one,
        isAcmeError('protocol', /returned a URL on .*only to the origin of the directory$/),
      );
    }
  }
  assert.equal(ca.requests.length, before);
  for (const name of ['newNonce', 'newAccount', 'newOrder', 'revokeCert'] as const) {
    const led = clientOf(ca);
    ca.override('directory', async (_, usual) => ({
      body: { ...((await usual()).body as object), [name]: elsewhere },
    }));
    const step =
      name === 'newOrder'
        ? newOrder(led, account, example, forever)
        : name === 'revokeCert'
          ? revokeCertificate(led, { account }, Buffer.alloc(1), 0, forever)
          : findAccount(led, account.privateKey, forever);
    await assert.rejects(step, isAcmeError('protocol', /only to the origin of the directory/), name);
  }
  ca.override('directory', { status: 301, headers: { Location: elsewhere } });
  await assert.rejects(clientOf(ca).directory(forever), isAcmeError('protocol', /redirect/));
  ca.override('certificate', async (_, usual) => ({
    ...(await usual()),
    headers: {
      'Content-Type': 'application/pem-certificate-chain',
      Link: `<${elsewhere}>;rel="alternate"`,
    },
  }));
  const picky = { ...wanted, preferredChain: 'Another Root' };
  assert.equal((await downloadCertificate(client, account, url, picky, forever)).chain.length, 1);
  assert.equal((await fetchOrder(client, account, order.url, forever)).status, 'valid');
  assert.equal(contacts, 0);
});

test('a directory URL must be valid and use https, except on loopback hosts', async () => {
  const sent: string[] = [];
  const outbound = async ({ url }: { readonly url: string }) => {
    sent.push(url);
    return { status: 500, headers: {}, body: Buffer.alloc(0) };
  };
  const ask = (directoryUrl: string) =>
    new AcmeClient({ world: impatientWorld, outbound, log: silentLog }, { directoryUrl }).directory(forever);
  const refused = [
    'http://ca.example/dir',
    'http://192.0.2.1/dir',
    'http://localhost.example.com/',
    'ftp://ca',
    'ca.example',
    '',
  ];
  for (const url of refused) await assert.rejects(ask(url), isAcmeError('protocol'), url);
  assert.deepEqual(sent, []);
  const allowed = [
    'https://ca.example/dir',
    'http://127.8.8.8/dir',
    'http://localhost:14000/dir',
    'http://[::1]:1/dir',
  ];
  for (const url of allowed) await assert.rejects(ask(url), isAcmeError('protocol', /status 500/), url);
  assert.deepEqual(sent, allowed);
});

test('reads are retried twice after a closed connection, and newOrder is not retried', async (t) => {
  const { world, waits } = recordingWorld();
  const { ca, client, account } = await registered(t, {}, world);
  const order = await newOrder(client, account, example, forever);
  const cut = { cutAfter: 0 };
  ca.override('order', cut, cut);
  await fetchOrder(client, account, order.url, forever);
  assert.deepEqual(waits, [500, 2000]);
  ca.override('order', cut, cut, cut);
  await assert.rejects(
    fetchOrder(client, account, order.url, forever),
    isAcmeError('network', /closed the connection/),
  );
  waits.length = 0;
  const orders = () => ca.kinds().filter((kind) => kind === 'newOrder').length;
  const before = orders();
  ca.override('newOrder', cut);
  await assert.rejects(newOrder(client, account, example, forever), isAcmeError('network'));
  assert.deepEqual(waits, []);
  assert.equal(orders(), before + 1);
});

test('an aborted signal cancels a running request and prevents new ones', async (t) => {
  const { ca, client, account } = await registered(t);
  const stop = new AbortController();
  const arrived = Promise.withResolvers<void>();
  ca.override('newOrder', () => {
    arrived.resolve();
    return { until: new Promise(() => undefined) };
  });
  const asking = newOrder(client, account, example, stop.signal);
  await arrived.promise;
  stop.abort();
  await assert.rejects(asking, isAcmeError('aborted'));
  const before = ca.requests.length;
  await assert.rejects(newOrder(client, account, example, stop.signal), isAcmeError('aborted'));
  await assert.rejects(clientOf(ca).directory(stop.signal), isAcmeError('aborted'));
  assert.equal(ca.requests.length, before);
});

test('every request sends User-Agent and Accept-Language headers', async (t) => {
  const { ca, client, account } = await registered(t);
  await newOrder(client, account, example, forever);
  for (const { headers } of ca.requests) {
    assert.equal(headers['user-agent'], 'vault-test/1');
    assert.equal(headers['accept-language'], 'en');
  }
});
