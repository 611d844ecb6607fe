/**
 * Every reader of what strangers send takes time linear in it: 16 kB of repeated pieces keep no reader, and no turn of
 * a server's event loop, busy for 50 ms. Processor time counts, which a busy machine does not lengthen.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { alternates } from '../src/acme/issued-certificate.ts';
import { readProblem } from '../src/acme/problem-document.ts';
import { parseCertName } from '../src/base/cert-name.ts';
import { parseDuration } from '../src/base/duration.ts';
import { parseIdentifier } from '../src/base/identifier.ts';
import { shortened } from '../src/base/printable-text.ts';
import { parseRetryAfter } from '../src/base/retry-after.ts';
import { isSecureUrl } from '../src/base/secure-url.ts';
import { parseTimestamp } from '../src/base/timestamp.ts';
import { readCertificateBundle } from '../src/crypto/bundles/certificate-bundle.ts';
import { looksLikePkcs12 } from '../src/crypto/bundles/pkcs12.ts';
import { pemText, readPemBlocks } from '../src/crypto/pem.ts';
import { readToken } from '../src/crypto/secrets/api-key-token.ts';
import { openCertificate, printable } from '../src/crypto/x509/certificate-facts.ts';
import { assertXml, elementsOf, textOf } from '../src/dns/providers/route53-xml.ts';
import { parseAnswer } from '../src/dns/resolver/dns-message.ts';
import { readName } from '../src/dns/resolver/dns-name.ts';
import { unquoteTxt } from '../src/dns/resolver/txt-string.ts';
import { passwordIssue } from '../src/domain/access/password-policy.ts';
import { checkpointSignedBy } from '../src/domain/audit/audit-checkpoint.ts';
import { closestNames } from '../src/domain/closest-names.ts';
import { readBearer } from '../src/http/auth/access.ts';
import { provenanceOf } from '../src/http/auth/same-origin.ts';
import { readSession } from '../src/http/auth/session-cookie.ts';
import { clientOf } from '../src/http/request/client-address.ts';
import { noneMatch } from '../src/http/request/conditional-request.ts';
import { forwardedElements } from '../src/http/request/forwarded-header.ts';
import { authorityOf, isDecodable, originForm } from '../src/http/request/request-target.ts';
import { consoleReply } from '../src/http/routes/console-routes.ts';
import { redirectReply } from '../src/http/server/https-redirect.ts';
import { offeredProtocols } from '../src/http/tls/client-hello.ts';
import { parseIpAddress, parseIpNetwork } from '../src/net/ip-network.ts';
import { trustedCa } from '../src/net/trusted-ca.ts';
import { signingKey } from '../src/net/webhook-signature.ts';
import { assertBrief, processorTimeOf, watchTurns } from './harness/event-loop-turns.ts';
import { fuzzRuns } from './harness/fuzz-runs.ts';
import { converse, requestText } from './harness/http/raw.ts';
import { testServer } from './harness/http/test-server.ts';

/** Milliseconds of processor time. */
const most = 50;
const size = 16_384;

const loopback = parseIpNetwork('127.0.0.1');
assert(loopback);
const trusted = [loopback];
const peer = '127.0.0.1';
const files = new Map([['index.html', Buffer.from('page')]]);
const redirectOf = (url: string, host: string) =>
  redirectReply({ publicUrl: undefined, httpsPort: 443 }, { url, method: 'GET', headers: { host } } as never);

/** By what they read. */
const readers: Readonly<Record<string, (text: string, bytes: Buffer) => unknown>> = {
  'the header Cookie': (text) => readSession(text),
  'the header Authorization': (text) => [readBearer(text), readBearer(`Bearer ${text}`)],
  'an API key': (text) => readToken(text),
  'the header If-None-Match': (text) => noneMatch(text, '"tag"'),
  'the header Forwarded': (text) => [...forwardedElements(text)],
  'the headers of proxies': (text) => [
    clientOf({ peer, forwardedFor: text, forwardedProto: text }, trusted),
    clientOf({ peer, forwarded: text }, trusted),
  ],
  'the headers Origin and Host': (text) => [
    provenanceOf({ origin: text, host: 'a' }, undefined),
    provenanceOf({ origin: 'https://a', host: text }, undefined),
    redirectOf('/', text),
  ],
  'the headers Accept and Accept-Encoding': (text) =>
    consoleReply(files)({ method: 'GET', url: '/a', headers: { accept: text, 'accept-encoding': text } }),
  'a request target': (text) => [
    originForm(text),
    authorityOf(text),
    isDecodable(text),
    redirectOf(text, 'a'),
  ],
  'a ClientHello': (_, bytes) => offeredProtocols(bytes),
  'a certificate name': (text) => parseCertName(text),
  'a domain or address': (text) => [parseIdentifier(text), parseIpAddress(text), parseIpNetwork(text)],
  'a time': (text) => [parseTimestamp(text), parseDuration(text), parseRetryAfter(text, 0)],
  'a URL': (text) => isSecureUrl(text),
  'a password': (text) => [passwordIssue('alice', text), passwordIssue('alice', text.slice(0, 1000))],
  'a misspelled name': (text) => closestNames(text.slice(0, 300), ['production', 'staging']),
  'text for messages': (text) => [shortened(text, 300), printable(text)],
  PEM: (text, bytes) => [pemText(bytes), readPemBlocks(text)],
  'an import': (_, bytes) => readCertificateBundle({ sources: [{ name: 'it', bytes }], now: 0 }),
  'a certificate': (_, bytes) => [openCertificate(bytes), looksLikePkcs12(bytes)],
  'certificates to trust': (text) => trustedCa.safeParse(text),
  'a signing secret': (text) => [signingKey(text), signingKey(`whsec_${text}`)],
  'a checkpoint': (text) => checkpointSignedBy([], text, 'it'),
  'the header Link of a CA': (text) => alternates(text, 'https://ca.test/'),
  'a problem document of a CA': (text) =>
    readProblem({ type: text, detail: text, subproblems: [{ detail: text, identifier: { value: text } }] }),
  'a response of a DNS server': (_, bytes) => parseAnswer(bytes),
  'a name in a response of a DNS server': (_, bytes) => readName(bytes, 0),
  'TXT data of a provider': (text) => [unquoteTxt(text), unquoteTxt(`"${text}`)],
  'XML of a provider': (text) => [
    assertXml(`<${text}>`),
    elementsOf(text, 'a'),
    textOf(`<a>${text}</a>`, 'a'),
  ],
};

/** What formats are made of, and what repetitions in expressions stumble over. */
const piece = fc.oneof(
  { arbitrary: fc.string({ minLength: 1, maxLength: 3 }), weight: 1 },
  {
    arbitrary: fc.constantFrom(
      ...[
        ' ',
        '\t',
        '\n',
        '\r\n',
        '\n\r\n',
        '\0',
        '=',
        ';',
        ',',
        ':',
        '.',
        '-',
        '_',
        '/',
        '\\',
        '"',
        "'",
        '<',
        '>',
      ],
      ...[
        '%',
        '%20',
        '%2',
        '@',
        '#',
        '?',
        '&',
        '*',
        '[',
        ']',
        '{',
        '(',
        'a',
        '0',
        'é',
        '\u{1f512}',
        '://',
        'vk_',
      ],
      ...[
        'a=b',
        'a=b;',
        '; ',
        ', ',
        '\\"',
        '"a",',
        'W/"',
        'for=',
        'for="',
        'rel="alternate"',
        '<a>; ',
        '<a',
        '<a>',
      ],
      ...['</a>', '&amp;', '&#', 'text/html', 'gzip;q=0', '1.', '::', '127.0.0.1, ', 'xn--', 'Bearer ', '9'],
      ...[
        '-----BEGIN CERTIFICATE-----\n',
        '-----END CERTIFICATE-----\n',
        '-----BEGIN ',
        '-----',
        'Proc-Type: 4',
      ],
      ...['\x16\x03\x01', '\x01', '\xc0\x0c', '\x3f', '\x30\x80', '\x30\x82', '\xff', '2026-01-01T'],
    ),
    weight: 4,
  },
);
const run = fc.tuple(fc.array(piece, { minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 4 }));
const long = fc.array(run, { minLength: 1, maxLength: 4 }).map((runs) => {
  const each = size / runs.length;
  const text = runs.map(([pieces, part]) => {
    const unit = pieces.join('');
    return unit.repeat(Math.ceil(each / part / unit.length));
  });
  return text.join('').slice(0, size);
});

function read(reader: (text: string, bytes: Buffer) => unknown, text: string): void {
  try {
    reader(text, Buffer.from(text, 'latin1'));
  } catch (error) {
    // A refusal is an answer; only the time counts.
    assert(error instanceof Error);
  }
}

suite('16 kB of repeated pieces are read in less than 50 ms of processor time:', () => {
  for (const [what, reader] of Object.entries(readers)) {
    test(what, async () => {
      const property = fc.asyncProperty(long, (text) =>
        assertBrief('reading', most, () => processorTimeOf(() => read(reader, text))),
      );
      await fc.assert(property, fuzzRuns(150));
    });
  }
});

test('the property fails for a reader that takes cubic time', async () => {
  const cubic = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/s;
  const reading = () => processorTimeOf(() => cubic.exec(' '.repeat(1600)));
  await assert.rejects(assertBrief('reading', most, reading), /^AssertionError.*reading took/);
});

test('no request of 16 kB keeps the event loop of a server busy for 50 ms', async (t) => {
  const server = await testServer(t, { trustedProxies: '127.0.0.1' });
  const headers = [
    'Cookie',
    'Authorization',
    'If-None-Match',
    'X-Forwarded-For',
    'Forwarded',
    'Origin',
    'Accept',
  ];
  // The first requests compile the server.
  const ask = (text: string) => converse(server.url, text);
  const sendable = long.map((text) => text.replaceAll(/[^\x20-\x7e]/g, ' '));
  const request = fc.oneof(
    fc
      .tuple(fc.constantFrom(...headers), sendable)
      .map(([name, text]) =>
        requestText('GET', '/api/v1/session', [`${name}: ${text.slice(0, 15_000)}`, 'Connection: close']),
      ),
    sendable.map((text) => {
      const path = text.replaceAll(' ', '+').slice(0, 15_000);
      return requestText('GET', `/api/v1/certificates/${path}`, ['Connection: close']);
    }),
    sendable.map((text) => {
      const query = text.replaceAll(' ', '+').replaceAll('#', '%23').slice(0, 15_000);
      return requestText('GET', `/api/v1/certificates?${query}`, ['Connection: close']);
    }),
    sendable.map((text) => {
      const lines = ['Content-Type: application/json', `Content-Length: ${text.length}`, 'Connection: close'];
      return requestText('POST', '/api/v1/session', lines) + text;
    }),
  );
  for (const text of fc.sample(request, { numRuns: 40, seed: 1 })) await ask(text);
  const property = fc.asyncProperty(request, async (text) => {
    await assertBrief('a turn', most, async () => {
      const stop = watchTurns();
      const answer = await ask(text);
      const longest = stop();
      assert.match(answer, /^HTTP\/1\.1 [234]\d\d /);
      return longest;
    });
  });
  await fc.assert(property, fuzzRuns(150));
});
