/**
 * What follows from where a request came from and to, at the server's door: logs, links, cookies, changes in a session.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pageOfApiKeys } from '../../../src/domain/access/api-key-views.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { converse, parseReply, rawRequest } from '../../harness/http/raw.ts';
import { goodPassword, makeAdministrator } from '../../harness/http/sign-in-fixtures.ts';

const behindProxy = { trustedProxies: '127.0.0.0/8' };
const byProxy = ['X-Forwarded-For: 192.0.2.66', 'X-Forwarded-For: 198.51.100.1', 'X-Forwarded-Proto: https'];
const download = '/api/v1/certificates/www/private.key';

suite('the address of the client', () => {
  test('is that of the trusted proxy in the audit log, the last use of the key and the request log', async (t) => {
    const server = await checkedServer(t, behindProxy);
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    assert.equal(
      (await server.raw('GET', download, [`Authorization: Bearer ${raw}`, ...byProxy])).status,
      200,
    );
    for (const target of ['/nothing', '//odd', '/']) await server.raw('GET', target, byProxy);
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.download').map(({ ip }) => ip),
      ['198.51.100.1'],
    );
    await server.vault.keyUse.write();
    assert.equal((await pageOfApiKeys(server.vault, { limit: 10 }))[0]?.last_used_ip, '198.51.100.1');
    const lines = server.log.lines.filter((line) => line.includes('"message":"request"'));
    assert.equal(lines.length, 5);
    for (const line of lines.slice(1)) assert.equal(JSON.parse(line).ip, '198.51.100.1', line);
  });

  test('is that of the connection if the peer is not a trusted proxy', async (t) => {
    const server = await checkedServer(t, { trustedProxies: '10.0.0.0/8' });
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    await server.raw('GET', download, [
      `Authorization: Bearer ${raw}`,
      ...byProxy,
      'Forwarded: for=192.0.2.1',
    ]);
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.download').map(({ ip }) => ip),
      ['127.0.0.1'],
    );
  });

  test('is rejected with 400 if two headers contradict each other, and the log has that of the proxy', async (t) => {
    const server = await checkedServer(t, behindProxy);
    const lines = ['X-Forwarded-For: 198.51.100.1', 'Forwarded: for=192.0.2.1'];
    const { status, body, headers } = await server.raw('GET', '/api/v1/health', lines);
    assert.equal(status, 400);
    assert.match(body, /Forwarded and X-Forwarded-For name different clients/);
    assert.match(headers.get('X-Request-Id') ?? '', /./);
    assert.equal(JSON.parse(server.log.lines.at(-1) ?? '').ip, '127.0.0.1');
  });
});

suite('the URL of the vault', () => {
  const urlFor = async (server: Awaited<ReturnType<typeof checkedServer>>, lines: readonly string[]) => {
    const { body } = await rawRequest(server.url, 'GET', '/client/install.sh', lines);
    return /https?:\/\/vault\.test[^"' ]*/.exec(body)?.[0];
  };

  test('has the scheme that a trusted proxy reports, and not that of another peer', async (t) => {
    const server = await checkedServer(t, behindProxy);
    assert.equal(await urlFor(server, byProxy), 'https://vault.test');
    assert.equal(await urlFor(server, ['Forwarded: for=192.0.2.1;proto=https']), 'https://vault.test');
    assert.equal(await urlFor(server, []), 'http://vault.test');
    const stranger = await checkedServer(t, { trustedProxies: '10.0.0.0/8' });
    assert.equal(await urlFor(stranger, byProxy), 'http://vault.test');
  });

  test('takes no host from X-Forwarded-Host', async (t) => {
    const server = await checkedServer(t, behindProxy);
    const lines = [...byProxy, 'X-Forwarded-Host: evil.test'];
    assert.equal(await urlFor(server, lines), 'https://vault.test');
    const { body } = await rawRequest(server.url, 'GET', '/client/install.sh', lines);
    assert.doesNotMatch(body, /evil\.test/);
  });
});

suite('behind a trusted proxy that speaks HTTPS', () => {
  const signInText = (lines: readonly string[]) => {
    const body = JSON.stringify({ name: 'alice', password: goodPassword });
    const all = [
      ...['POST /api/v1/session HTTP/1.1', 'Host: vault.test', 'Connection: close', ...lines],
      ...['Content-Type: application/json', `Content-Length: ${body.length}`, '', body],
    ];
    return all.join('\r\n');
  };

  test('the session cookie is Secure with the __Host- prefix, and is rejected over plain HTTP', async (t) => {
    const server = await checkedServer(t, behindProxy);
    await makeAdministrator(server.vault, 'alice');
    const { status, headers } = parseReply(await converse(server.url, signInText(byProxy)));
    assert.equal(status, 201);
    assert.match(headers.get('Set-Cookie') ?? '', /^__Host-vault_session=.*; Secure$/);
    const cookie = headers.get('Set-Cookie')?.split(';', 1)[0] ?? '';
    const session = async (lines: readonly string[]) =>
      (await server.raw('GET', '/api/v1/session', [`Cookie: ${cookie}`, ...lines])).status;
    assert.equal(await session(byProxy), 200);
    assert.equal(await session([]), 401, 'in the clear it is none');
    const plain = parseReply(await converse(server.url, signInText([])));
    assert.match(plain.headers.get('Set-Cookie') ?? '', /^vault_session=(?!.*Secure)/);
  });

  test('signing in is accepted from https pages of the same host, not from http pages or another host', async (t) => {
    const server = await checkedServer(t, behindProxy);
    await makeAdministrator(server.vault, 'alice');
    const status = async (origin: string, lines: readonly string[]) =>
      parseReply(await converse(server.url, signInText([...lines, `Origin: ${origin}`]))).status;
    assert.equal(await status('https://vault.test', byProxy), 201);
    assert.equal(await status('http://vault.test', byProxy), 403);
    assert.equal(await status('https://other.test', byProxy), 403);
    assert.equal(await status('https://vault.test', []), 201, 'an unknown proxy may speak HTTPS');
  });

  test('failed sign-ins are counted by client address, not by proxy', async (t) => {
    const server = await checkedServer(t, behindProxy);
    await makeAdministrator(server.vault, 'alice');
    const attempt = async (name: string, from: string) => {
      const text = signInText([`X-Forwarded-For: ${from}`]).replace('"alice"', `"${name}"`);
      return parseReply(await converse(server.url, text)).status;
    };
    for (let count = 0; count < 20; count += 1)
      assert.equal(await attempt(`no-${String(count).padStart(2, '0')}`, '192.0.2.66'), 401);
    assert.equal(await attempt('alice', '192.0.2.66'), 429);
    assert.equal(await attempt('alice', '192.0.2.67'), 201);
  });
});
