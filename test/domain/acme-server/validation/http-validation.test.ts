/** http-01 as the vault validates it, against servers that answer, lie, stammer or lead astray. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { validationCertificate } from '../../../../src/crypto/x509/acme-validation-certificate.ts';
import {
  challengePath,
  keyAuthorization,
  rawServer,
  secureWebServer,
  type Validator,
  validator,
  webServer,
} from '../../../harness/acme/validation-fixtures.ts';
import { identifier } from '../../../harness/ca/private-chain.ts';
import type { FakeRecords } from '../../../harness/dns/fake-dns.ts';
import { TestWorld } from '../../../harness/test-world.ts';

const records: FakeRecords = {
  'A www.example.test': ['127.0.0.1'],
  'A other.example.test': ['127.0.0.1'],
  'A metadata.example.test': ['169.254.169.254'],
};

/** A validator, and the server that it asks. */
async function prepared(
  t: TestContext,
  answer: (path: string, response: ServerResponse, host: string) => void,
  options: Parameters<typeof validator>[2] = {},
  dns: FakeRecords = records,
) {
  const checked = await validator(t, dns, options);
  const server = await webServer(t, (request, response) =>
    answer(request.url ?? '', response, request.headers.host ?? ''),
  );
  checked.ports.http = server.port;
  return { ...checked, server };
}

/** A server that sends everyone here first. */
function leading(location: string, status = 302) {
  return (path: string, response: ServerResponse) => {
    if (path === challengePath) response.writeHead(status, { Location: location }).end();
    else response.end(keyAuthorization);
  };
}

suite('http-01 validation', () => {
  test('succeeds with trailing whitespace after the key authorization, one A query and the name as Host', async (t) => {
    const { validate, server, dns } = await prepared(t, (_, response) =>
      response.end(`${keyAuthorization}\r\n \t`),
    );
    assert.equal(await validate(), undefined);
    const [asked] = server.requests;
    assert.equal(asked?.url, challengePath);
    assert.equal(asked?.headers.host, 'www.example.test');
    assert.equal(asked?.headers['user-agent'], 'vault-test (ACME validation)');
    // A second question could have another answer than the one that was checked.
    assert.equal(dns.questions.filter(({ type }) => type === 'A').length, 1);
  });

  test('succeeds for an IP address without a DNS query', async (t) => {
    const { validate, server, dns } = await prepared(t, (_, response) => response.end(keyAuthorization));
    assert.equal(await validate({ identifier: '127.0.0.1' }), undefined);
    assert.equal(server.requests[0]?.headers.host, '127.0.0.1');
    assert.deepEqual(dns.questions, []);
  });

  test('falls back to IPv4 after a failed IPv6 connection, and reports both when both fail', async (t) => {
    const { validate, refused, ports } = await prepared(
      t,
      (_, response) => response.end(keyAuthorization),
      {},
      {
        'A www.example.test': ['127.0.0.1'],
        'AAAA www.example.test': ['::1'],
      },
    );
    assert.equal(await validate(), undefined);
    ports.http = 1;
    await refused(
      'connection',
      /^http:\/\/www\.example\.test\/\.well-known\/\S+ failed at \[::1\]:1: \S.*; 127\.0\.0\.1:1: connection refused$/,
    );
  });

  test('rejects another response body and quotes it, shortened and on one line', async (t) => {
    let body = 'an\nother \u{1b}[2J';
    const { refused } = await prepared(t, (_, response) => response.end(body));
    await refused(
      'incorrectResponse',
      /\(127\.0\.0\.1:\d+\) answered "an other.*instead of the key authorization$/,
    );
    body = keyAuthorization.slice(0, -1);
    await refused('incorrectResponse', /\(86 bytes\) instead of the key authorization/);
    body = `${keyAuthorization}${' '.repeat(5000)}`;
    await refused('incorrectResponse', /\(more than 256 bytes\)/);
    body = '';
    await refused('incorrectResponse', /answered "" \(0 bytes\)/);
  });

  test('fails with unauthorized for status 404 and reports the URL and address', async (t) => {
    const { refused } = await prepared(t, (_, response) => response.writeHead(404).end(keyAuthorization));
    await refused(
      'unauthorized',
      /^http:\/\/www\.example\.test\/\S+ \(127\.0\.0\.1:\d+\) answered with status 404$/,
    );
  });
});

suite('http-01 redirects', () => {
  test('are followed to another path, another name and HTTPS with an untrusted certificate', async (t) => {
    const seen: string[] = [];
    const { validate, ports } = await prepared(t, (path, response, host) => {
      seen.push(`${host}${path}`);
      const next = path === challengePath ? '/next?a=b' : 'https://other.example.test:443/last#part';
      response.writeHead(path === challengePath ? 301 : 308, { Location: next }).end();
    });
    const { certificate, privateKey } = await validationCertificate(identifier('wrong.test'), 'x', {
      serial: Buffer.alloc(16, 1),
      notBefore: 0,
      notAfter: 1000,
    });
    ports.tls = await secureWebServer(
      t,
      { cert: certificate, key: privateKey.expose() },
      (request, response) => {
        seen.push(`${request.headers.host}${request.url}`);
        response.end(keyAuthorization);
      },
    );
    assert.equal(await validate(), undefined);
    assert.deepEqual(seen, [
      `www.example.test${challengePath}`,
      'www.example.test/next?a=b',
      'other.example.test/last',
    ]);
  });

  const refusals: readonly [location: string, why: RegExp, status?: number][] = [
    ['http://169.254.169.254/latest/meta-data/', /an address instead of a name/],
    ['http://2852039166/latest/', /an address instead of a name/],
    ['http://[::ffff:a9fe:a9fe]/', /an address instead of a name/],
    ['http://127.0.0.1/', /an address instead of a name/],
    [
      'http://metadata.example.test/',
      /resolves to 169\.254\.169\.254, but the vault does not validate at a cloud's metadata service/,
    ],
    ['http://www.example.test:8080/', /neither on port 80 nor on port 443/],
    ['ftp://www.example.test/', /neither http nor https/],
    ['file:///etc/passwd', /neither http nor https/],
    ['gopher://www.example.test:80/', /neither http nor https/],
    ['http://', /is not a URL/],
    [`/${'x'.repeat(3000)}`, /is not a URL/],
    [challengePath, /redirect loop/],
    ['http://absent.example.test/', /absent\.example\.test has no A or AAAA record/],
  ];
  for (const [location, why] of refusals) {
    test(`to ${location.slice(0, 50)} are rejected`, async (t) => {
      const { validate, server } = await prepared(t, leading(location));
      const problem = await validate();
      assert.match(problem?.message ?? '', why);
      assert.match(problem?.type ?? '', /^(connection|dns)$/);
      assert.equal(server.requests.length, 1);
    });
  }

  test('to another name do not reveal the response body', async (t) => {
    const { refused } = await prepared(t, (path, response) => {
      if (path === challengePath)
        response.writeHead(302, { Location: 'http://other.example.test/secret' }).end();
      else response.end('a secret of the intranet');
    });
    await refused(
      'incorrectResponse',
      /^http:\/\/other\.example\.test\/secret \(127\.0\.0\.1:\d+\) answered 24 bytes instead of the key authorization$/,
    );
  });

  test('with status 303 or without a Location header are rejected', async (t) => {
    const form = await prepared(t, leading('/next', 303));
    await form.refused('unauthorized', /answered with status 303/);
    const lost = await prepared(t, (_, response) => response.writeHead(302).end());
    await lost.refused('connection', /redirects without a Location/);
  });

  test('are followed at most ten times', async (t) => {
    let hops = 10;
    const { validate, refused, server } = await prepared(t, (path, response) => {
      const at = Number(/\d+$/.exec(path === challengePath ? '0' : path)?.[0]);
      if (at === hops) response.end(keyAuthorization);
      else response.writeHead(307, { Location: `/${at + 1}` }).end();
    });
    assert.equal(await validate(), undefined);
    assert.equal(server.requests.length, 11);
    hops = Number.POSITIVE_INFINITY;
    await refused('connection', /more than 10 redirects/);
    assert.equal(server.requests.length, 22);
  });
});

suite('the default address rules', () => {
  const refused: readonly [type: 'A' | 'AAAA', address: string, kind: RegExp][] = [
    [
      'A',
      '127.0.0.1',
      /127\.0\.0\.1, but the vault does not validate at a loopback address; .*--acme-validation-allow 127\.0\.0\.1:\d+$/,
    ],
    ['A', '169.254.1.2', /a link-local address/],
    ['A', '0.0.0.0', /the unspecified address/],
    ['A', '224.0.0.1', /a multicast address/],
    ['AAAA', '::1', /a loopback address/],
    ['AAAA', 'fd00:ec2::254', /a cloud's metadata service/],
    ['AAAA', '64:ff9b::7f00:1', /a loopback address/],
    ['AAAA', '::ffff:127.0.0.1', /a loopback address/],
  ];
  for (const [type, address, kind] of refused) {
    test(`reject a name that resolves to ${address}`, async (t) => {
      const dns = { [`${type} www.example.test`]: [address] };
      const { refused, server } = await prepared(
        t,
        (_, response) => response.end(keyAuthorization),
        { rules: { allowed: [] } },
        dns,
      );
      await refused('connection', kind);
      assert.deepEqual(server.requests, []);
    });
  }

  test('reject a loopback address as an identifier', async (t) => {
    const { refused, server } = await prepared(t, (_, response) => response.end(keyAuthorization), {
      rules: { allowed: [] },
    });
    await refused('connection', /^the vault does not validate at a loopback address/, {
      identifier: '127.0.0.1',
    });
    await refused('connection', /^the vault does not validate at a loopback address/, { identifier: '::1' });
    assert.deepEqual(server.requests, []);
  });
});

suite('hostile servers', () => {
  test('an endless body is cut off', async (t) => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { refused } = await prepared(t, (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1000)));
      };
      response.on('drain', more).on('close', () => resolve());
      more();
    });
    await refused('incorrectResponse', /more than 256 bytes/);
    await closed;
  });

  test('endless headers are cut off', async (t) => {
    const { refused, ports } = await validator(t, records);
    ports.http = await rawServer(t, (socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(`X: ${'x'.repeat(1000)}\r\n`));
      };
      socket.on('drain', more).write('HTTP/1.1 200 OK\r\n');
      more();
    });
    await refused('connection', /the response is not HTTP/);
  });

  for (const [what, bytes, why] of [
    ['an SSH banner', 'SSH-2.0-OpenSSH_9.2p1\r\n', /the response is not HTTP/],
    [
      'a protocol switch',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
      /closed the connection/,
    ],
    [
      'an incomplete response',
      'HTTP/1.1 200 OK\r\nContent-Length: 87\r\n\r\nhalf',
      /before the response was complete|aborted/,
    ],
    ['an empty response', '', /closed the connection/],
  ] as const) {
    test(`${what} fails the validation with a connection problem`, async (t) => {
      const { refused, ports } = await validator(t, records);
      ports.http = await rawServer(t, (socket) => {
        socket.once('data', () => socket.end(bytes));
      });
      await refused('connection', why);
    });
  }

  const dripping = async (t: TestContext, checked: Validator, bytes: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    checked.ports.http = await rawServer(t, (socket) => {
      socket.once('data', () => {
        socket.write(bytes);
        resolve();
      });
    });
    return { begun: promise };
  };

  test('a response body that does not end times out after ten seconds', async (t) => {
    const world = new TestWorld();
    const checked = await validator(t, records, { world });
    const { begun } = await dripping(t, checked, 'HTTP/1.1 200 OK\r\n\r\nsl');
    const problem = checked.validate();
    await begun;
    world.advance(10_000);
    assert.equal((await problem)?.type, 'connection');
    assert.match(
      (await problem)?.message ?? '',
      /^http:\/\/www\.\S+ at 127\.0\.0\.1:\d+ did not finish within 10 s$/,
    );
  });

  test('a canceled validation rejects with the reason of the cancellation', async (t) => {
    const checked = await validator(t, records);
    const { begun } = await dripping(t, checked, 'HTTP/1.1 200 OK\r\n\r\nsl');
    const stop = new AbortController();
    const running = checked.validate({}, stop.signal);
    await begun;
    stop.abort(new Error('stopping'));
    await assert.rejects(running, /^Error: stopping$/);
  });
});

suite('DNS lookups for http-01', () => {
  test('fail with a dns problem for a name without A or AAAA records', async (t) => {
    const { refused } = await validator(t, {});
    await refused('dns', /^www\.example\.test has no A or AAAA record$/);
  });

  test('fail with a dns problem that reports the name server and SERVFAIL', async (t) => {
    const { refused, dns } = await validator(t, records);
    dns.trouble = () => 'SERVFAIL';
    await refused('dns', /query for the A of www\.example\.test failed: 127\.0\.0\.1:\d+ answered SERVFAIL/);
  });
});
