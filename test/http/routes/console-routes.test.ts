/** How the console's files are served: to whom, in which encoding, for how long, and under which rules. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type ConsoleRequest, consoleReply } from '../../../src/http/routes/console-routes.ts';

const files = new Map(
  Object.entries({
    'index.html': '<!doctype html>',
    'index.html.br': 'page, brotli',
    'index.html.gz': 'page, gzip',
    'main-abc123.js': 'script',
    'main-abc123.js.br': 'script, brotli',
    'main-abc123.js.gz': 'script, gzip',
    'main-def456.css': 'style',
  }).map(([name, text]) => [name, Buffer.from(text)]),
);
const reply = consoleReply(files);

const get = (url: string, headers: ConsoleRequest['headers'] = {}, method = 'GET') =>
  reply({ method, url, headers });
const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const script = '/console/main-abc123.js';

suite('the console page', () => {
  test('is served at / to any client, and at other paths only to clients that accept HTML', () => {
    assert.equal(get('/')?.body.toString(), '<!doctype html>');
    for (const path of [
      '/certificates',
      '/certificates/www?tab=versions',
      '/setup',
      '/no/such/page',
      '/API/v1/x',
    ]) {
      assert.equal(get(path, { accept: html })?.status, 200, path);
      assert.equal(get(path), undefined, path);
      assert.equal(get(path, { accept: '*/*' }), undefined, path);
      assert.equal(get(path, { accept: 'application/json, text/htmlx' }), undefined, path);
    }
  });

  test('is never served under /api, /client, /.well-known and /console', () => {
    const paths = [
      '/api',
      '/api/v1/nothing',
      '/client/x',
      '/.well-known/x',
      '/console/x.js',
      '/console/',
      '/console/index.html',
    ];
    for (const path of paths) assert.equal(get(path, { accept: html }), undefined, path);
  });

  test('has Cache-Control no-cache and a same-origin Content-Security-Policy', () => {
    const headers = get('/')?.headers ?? {};
    assert.equal(headers['Cache-Control'], 'no-cache');
    assert.equal(headers['Content-Type'], 'text/html; charset=utf-8');
    assert.equal(
      headers['Content-Security-Policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
  });

  test('is not served for methods other than GET and HEAD, or without a built console', () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) assert.equal(get('/', {}, method), undefined);
    assert.equal(get('/', {}, 'HEAD')?.status, 200);
    assert.equal(consoleReply(new Map())({ method: 'GET', url: '/', headers: {} }), undefined);
  });
});

suite('hashed files', () => {
  test('are cached forever', () => {
    const headers = get(script)?.headers ?? {};
    assert.equal(headers['Cache-Control'], 'public, max-age=31536000, immutable');
    assert.equal(headers['Content-Type'], 'text/javascript; charset=utf-8');
    assert.equal(get('/console/main-def456.css')?.headers['Content-Type'], 'text/css; charset=utf-8');
  });

  test('use the best available encoding that the client accepts', () => {
    const cases: [string | undefined, string | undefined, string][] = [
      ['gzip, deflate, br, zstd', 'br', 'script, brotli'],
      ['gzip', 'gzip', 'script, gzip'],
      ['br;q=0, gzip;q=0.5', 'gzip', 'script, gzip'],
      ['*', 'br', 'script, brotli'],
      ['*;q=0', undefined, 'script'],
      ['identity', undefined, 'script'],
      [undefined, undefined, 'script'],
    ];
    for (const [accepted, encoding, body] of cases) {
      const answer = get(script, { ...(accepted !== undefined && { 'accept-encoding': accepted }) });
      assert.equal(answer?.headers['Content-Encoding'], encoding, String(accepted));
      assert.equal(answer?.body.toString(), body, String(accepted));
      assert.equal(answer?.headers.Vary, 'Accept-Encoding');
    }
    const plain = get('/console/main-def456.css', { 'accept-encoding': 'br' });
    assert.equal(plain?.headers['Content-Encoding'], undefined);
  });

  test('have an entity tag per encoding, and return 304 when it matches', () => {
    const tag = get(script, { 'accept-encoding': 'br' })?.headers.ETag ?? '';
    assert.notEqual(tag, get(script)?.headers.ETag);
    const again = get(script, { 'accept-encoding': 'br', 'if-none-match': tag });
    assert.deepEqual([again?.status, again?.body], [304, '']);
    assert.equal(again?.headers.ETag, tag);
  });

  test('are not served under their compressed file names or by path traversal', () => {
    for (const name of ['main-abc123.js.br', '../main-abc123.js', '..%2Fvault.db', 'constructor', '']) {
      assert.equal(get(`/console/${name}`, { accept: html }), undefined, name);
    }
  });
});
