/**
 * Every operation of the API document, as the server hands it out, under requests made from its own schemas: good ones,
 * nearly good ones and hostile ones, from every kind of caller. Every response is one that the document
 * declares, no caller gets what it may not access, and the vault stays intact.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { scopes as allScopes } from '../../src/base/scope.ts';
import { outsideFile } from '../harness/database/outside-database.ts';
import { testedEngine } from '../harness/database/tested-engine.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';
import { type Answer, type ApiDocument, apiChecker, operationAt } from '../harness/http/api-checker.ts';
import { type WireRequest, wireClient } from './fuzz-client.ts';
import { type Place, requestsTo, validRequestsTo } from './fuzz-requests.ts';
import type { Words } from './fuzz-values.ts';
import {
  type Caller,
  type CallerKind,
  callerKinds,
  type FuzzVault,
  fuzzVault,
  password,
} from './fuzz-vault.ts';

/**
 * Words that mean something to the vault, by member, by `?parameter`, and by the collection whose member a path names.
 */
const fixedWords: Words = {
  'certificates/{name}': ['www', 'www', 'imported', 'pending', 'made-1', 'made-2', 'nothing'],
  'issuers/{name}': ['local-ca', 'an-acme-ca', 'nothing'],
  'dns-providers/{name}': ['hook', 'by-hand', 'nothing'],
  'administrators/{name}': ['alice', 'bob', 'carol', 'nobody'],
  'api-keys/{id}': [1, 2, 3, 4, 5, 6, 7, 8, 20, 999_999],
  'enrollments/{id}': [1, 2, 3, 999_999],
  'acme-clients/{id}': [1, 2, 3, 999_999],
  'acme-accounts/{id}': [1, 2, 3, 999_999],
  'endpoints/{id}': [1, 1, 2, 3, 999_999],
  'renewals/{id}': [1, 1, 1, 2, 3, 4, 5, 6, 999_999],
  'sessions/{id}': [1, 2, 3, 4, 5, 6, 7, 8, 999_999],
  'acme-challenge/{token}': ['token', 'token', 'a'.repeat(43)],
  name: ['www', 'imported', 'made-1', 'made-2', 'carol', 'made-3'],
  domains: ['a.example.test', '*.b.example.test', '192.0.2.1', '2001:db8::1', 'xn--bcher-kva.example.test'],
  issuer: ['local-ca', 'an-acme-ca', 'nothing'],
  fallback_issuer: ['local-ca', 'an-acme-ca'],
  key_type: ['ec256', 'ec384', 'ed25519'],
  lifetime: ['90d', '1h', '3650d', '1y'],
  profile: ['shortlived'],
  challenge: ['http-01', 'dns-01', 'tls-alpn-01', 'dns-persist-01'],
  scopes: [...allScopes],
  certificates: ['www', 'imported', '*'],
  expires_at: ['2030-01-31T00:00:00Z', '2031-01-31T00:00:00.123+01:00'],
  directory_url: ['http://127.0.0.1:9/directory', 'https://127.0.0.1:9/directory'],
  email: ['ops@example.test'],
  eab_hmac_key: ['aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8'],
  ca_pem: ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
  type: ['manual', 'webhook', 'rfc2136', 'exec', 'cloudflare', 'route53', 'google', 'azure', 'ovh'],
  zones: ['example.test', 'other.test'],
  config: [{}, { url: 'http://127.0.0.1:9/' }, { api_token: 'x' }, { url: 7, __proto__: { a: 1 } }],
  domain: ['www.example.test', '*.example.test', 'elsewhere.test'],
  token: ['a'.repeat(43)],
  password: [password, 'another sentence that people would use'],
  current: [password],
  new: ['another sentence that people would use', 'short'],
  content_base64: ['AAAA', 'MIIBCgKCAQEA', 'MIIC'],
  text: ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
  address: ['127.0.0.1:9', '[::1]:9', '127.0.0.1:10'],
  certificate: ['www', 'imported', 'nothing'],
  server_name: ['www.example.test', ''],
  interval: ['5m', '30d', '1h'],
  '?after': ['www', '1700000000000:www', '1'],
  '?search': ['ww', '%', '_'],
  '?issuer': ['', 'local-ca'],
  '?certificate': ['www', 'nothing'],
  '?actor': ['admin:alice', 'local-cli'],
  '?since': ['2026-11-21T12:00:00Z', '0001-01-01T00:00:00Z'],
  '?until': ['2026-11-21T12:00:00Z', '9999-12-31T23:59:59Z'],
};

/** What Node's own headers leave of the 16 KiB that the server reads before it knows which operation is meant. */
const largestHead = 16_000;

type Surface = {
  readonly vault: FuzzVault;
  readonly places: readonly Place[];
  readonly document: ApiDocument;
  readonly words: Words;
  /** Sends the request as this caller, and holds the answer against all that must be so. */
  readonly ask: (request: WireRequest, kind: CallerKind) => Promise<Answer>;
};

async function surface(t: TestContext): Promise<Surface> {
  const vault = await fuzzVault(t);
  const { server } = vault;
  const response = await fetch(new URL('/api/v1/openapi.json', server.url));
  const document = (await response.json()) as ApiDocument;
  const check = apiChecker(document);
  const send = wireClient(t, server.url);
  const places = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, operation]) => ({ method: verb.toUpperCase(), path, operation })),
  );
  const words = {
    ...fixedWords,
    text: [vault.bundle, ...(fixedWords.text ?? [])],
    content_base64: [Buffer.from(vault.bundle).toString('base64'), ...(fixedWords.content_base64 ?? [])],
  };
  const ask: Surface['ask'] = async (request, kind) => {
    const caller = await vault.caller(kind);
    const headers = { ...request.headers, ...caller.headers };
    const answer = await send({ ...request, headers });
    const isTooLarge = answer.status === 431 && headSize({ ...request, headers }) > largestHead;
    if (!isTooLarge) check(answer);
    refuseFailure(server.log.lines, document, answer);
    refuseBreach(document, caller, answer);
    refuseLeak(vault, document, answer);
    if (answer.status < 300 && request.method !== 'GET' && request.method !== 'HEAD') await vault.recreate();
    return answer;
  };
  return { vault, places, document, words, ask };
}

/** The bytes of the target and of the headers that the test adds to those of Node. */
function headSize({ target, headers }: Pick<WireRequest, 'target' | 'headers'>): number {
  return target.length + Object.entries(headers).flat(2).join('').length;
}

/** Never a 5xx; but readiness says by 503 that no renewals run beside this server. */
function refuseFailure(log: readonly string[], document: ApiDocument, answer: Answer): void {
  if (operationAt(document, answer.method, answer.target).operation?.operationId === 'getReady') return;
  const why = answer.status < 500 ? '' : log.filter((line) => line.includes('"level":"error"')).at(-1);
  assert(answer.status < 500, `${answer.status} ${answer.body} ${why}`);
}

/** The document's access rules: without credentials there is no success response. */
function refuseBreach(document: ApiDocument, caller: Caller, { method, target, status }: Answer): void {
  const { path = '', operation } = operationAt(document, method, target);
  if (operation === undefined || operation.security.length === 0 || status >= 400) return;
  const scope = /Requires the scope `([\w:]+)`/.exec(operation.description ?? '')?.[1];
  const from = `${caller.kind} got ${status} from ${method} ${target}`;
  if (caller.isAdministrator) {
    const isChange = method !== 'GET' && method !== 'HEAD';
    assert(caller.kind === 'an administrator' || !isChange, `${from}, asked from another site`);
    return;
  }
  const takesAnyKey = operation.operationId === 'getWhoami' && caller.scopes.length > 0;
  assert(takesAnyKey || caller.scopes.some((one) => one === scope), from);
  if (!caller.limited || !path.includes('{name}')) return;
  const at = path.split('/').indexOf('{name}');
  const name = decodeURIComponent(
    target
      .replace(/^https?:\/\/[^/]*/i, '')
      .split('?', 1)[0]
      ?.split('/')[at] ?? '',
  );
  assert.equal(name, 'www', `${from}, which is not in its allowlist`);
}

/** As PEM, also inside JSON. */
const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----(\\n|\s)+[A-Za-z0-9+/]{20}/;

const downloads = [
  ...['download_private_key', 'download_private_key_pem'],
  ...['download_combined_pem', 'download_keystore_p12', 'download_archive_tar'],
];

/** No secret that the vault knows is in an answer, but for a private key in the answer to its download. */
function refuseLeak({ secrets }: FuzzVault, document: ApiDocument, answer: Answer): void {
  const id = operationAt(document, answer.method, answer.target).operation?.operationId ?? '';
  const said = `${JSON.stringify([...answer.headers].filter(([name]) => name !== 'set-cookie'))}${answer.body}`;
  const isDownload = downloads.includes(id) && answer.status === 200;
  assert(isDownload || !privateKey.test(said), `a private key is in the answer of ${answer.target}`);
  for (const [what, secret] of secrets) {
    const isTheirs = isDownload && what === 'an imported key';
    assert(isTheirs || !said.includes(secret), `${what} is in the answer of ${answer.target}`);
  }
}

/** The vault is well, its database sound, and what it holds can still be handed out. */
async function assertSound({ vault, ask }: Surface): Promise<void> {
  const { server, recreate } = vault;
  await recreate();
  await server.vault.audit.drain();
  const get = (target: string) =>
    ask({ method: 'GET', target, headers: {}, body: undefined }, 'an administrator');
  assert.equal((await get('/api/v1/health')).status, 200);
  assert.match((await get('/api/v1/about')).body, /"database":"ok","master_key":"ok"/);
  const key = await get('/api/v1/certificates/www/private.key');
  assert.match(key.body, /^-----BEGIN PRIVATE KEY-----/);
  // A server examines its pages and references itself.
  if (testedEngine === 'sqlite') {
    const [integrity, foreign] = outsideFile(server.dataDir, (db) => [
      db.pragma('integrity_check', { simple: true }),
      db.pragma('foreign_key_check'),
    ]);
    assert.deepEqual([integrity, foreign], ['ok', []]);
  }
  const errors = server.log.lines.filter((line) => line.includes('"level":"error"'));
  assert.deepEqual(errors, []);
}

suite('any request by any caller', () => {
  test('gets a response that the API document declares, and leaves the vault intact', async (t) => {
    const place = await surface(t);
    for (const one of place.places) {
      await t.test(`${one.method} ${one.path}`, async (of) => {
        const seen = new Map<number, number>();
        // Half of all requests are authorized, so that handlers are tested as well.
        const kind = fc.oneof(fc.constant<CallerKind>('an administrator'), fc.constantFrom(...callerKinds));
        const property = fc.asyncProperty(requestsTo(one, place.words), kind, async (request, caller) => {
          place.vault.server.world.advance(1000);
          const { status } = await place.ask(request, caller);
          seen.set(status, (seen.get(status) ?? 0) + 1);
        });
        await fc.assert(property, fuzzRuns(20));
        of.diagnostic([...seen].map(([status, count]) => `${status}: ${count}`).join(', '));
      });
    }
    await assertSound(place);
  });

  test('is not rejected with 400 if it is a GET that the API document allows', async (t) => {
    const place = await surface(t);
    // The document cannot say that a cursor belongs to an order, what a moment is, and what a label is exactly.
    const more = ['listCertificates', 'listAuditEvents', 'exportAuditEvents'];
    const reading = place.places
      .filter(({ method, operation: { operationId } }) => method === 'GET' && !more.includes(operationId))
      .map(({ operation: { parameters, ...rest }, ...one }) => ({
        ...one,
        operation: { ...rest, parameters: parameters.filter(({ name }) => name !== 'label') },
      }));
    const property = fc.asyncProperty(
      fc.constantFrom(...reading).chain((one) => validRequestsTo(one, place.words)),
      async (request) => {
        const { status, body } = await place.ask(request, 'an administrator');
        assert.notEqual(status, 400, `${request.target}: ${body}`);
      },
    );
    await fc.assert(property, fuzzRuns(300));
  });
});
