/**
 * Connections by the byte: requests that two servers could read differently, and a second request hidden in the first.
 * Each gets exactly the answers that it should, and what was hidden is never done: the audit log and the log tell.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { open, readToEnd } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

type Answered = {
  /** Of all answers, in their order. */
  readonly statuses: readonly number[];
  /** How many of the hidden requests were carried out. */
  readonly downloads: number;
};

/** A server, a request that must not be carried out, and what becomes of bytes that are sent. */
async function prepared(t: TestContext) {
  const server = await testServer(t);
  await makeCertificate(server.vault, 'www');
  const { raw } = await makeKey(server.vault);
  const lines = ['Host: vault.test', `Authorization: Bearer ${raw}`];
  const hidden = ['GET /api/v1/certificates/www/private.key HTTP/1.1', ...lines, '', ''].join('\r\n');
  let downloaded = 0;

  /** `staying` clients wait until the server closes the connection; the others say that they are done. */
  async function answersTo(
    pieces: readonly string[],
    client: 'leaving' | 'staying' = 'leaving',
  ): Promise<Answered> {
    const socket = await open(server.url);
    const all = readToEnd(socket);
    for (const piece of pieces) {
      if (socket.writable) socket.write(piece, 'latin1');
      // Each piece has a packet of its own.
      if (pieces.length > 1) await server.world.turn();
    }
    if (client === 'leaving') socket.end();
    const answers = answersIn(await all);
    await server.vault.audit.drain();
    const downloads = eventsOf(server.dataDir, 'certificate.download').length - downloaded;
    downloaded += downloads;
    const final = answers.filter(({ status }) => status !== 100);
    for (const { status, headers, body } of final) {
      const id = `"request_id":"${headers.get('X-Request-Id')}"`;
      assert(
        server.log.lines.some((line) => line.includes(id)),
        `${id} is not in the log`,
      );
      if (status < 400) continue;
      assert.equal(headers.get('Content-Type'), 'application/problem+json');
      assert.equal(JSON.parse(body).status, status);
    }
    return { statuses: answers.map(({ status }) => status), downloads };
  }
  return { server, hidden, answersTo };
}

/** All answers in what came over the wire, which must hold nothing else. */
function answersIn(wire: string): { status: number; headers: Headers; body: string }[] {
  const answers: { status: number; headers: Headers; body: string }[] = [];
  let rest = wire;
  while (rest !== '') {
    const [head, status] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n(?:[\w-]+: [^\r\n]*\r\n)*\r\n/.exec(rest) ?? [];
    assert(head !== undefined, `this is no answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const fields = head.split('\r\n').slice(1, -2);
    const headers = new Headers(
      fields.map((line): [string, string] => [
        line.split(':', 1)[0] ?? '',
        line.slice(line.indexOf(':') + 2),
      ]),
    );
    const length = Number(headers.get('Content-Length') ?? 0);
    answers.push({ status: Number(status), headers, body: rest.slice(head.length, head.length + length) });
    rest = rest.slice(head.length + length);
  }
  return answers;
}

const health = '/api/v1/health';
const post = (...lines: string[]) =>
  [`POST ${health} HTTP/1.1`, 'Host: vault.test', ...lines, '', ''].join('\r\n');
const get = (...lines: string[]) =>
  [`GET ${health} HTTP/1.1`, 'Host: vault.test', ...lines, '', ''].join('\r\n');
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
const chunked = 'Transfer-Encoding: chunked';

/** The refusal of a broken body, or the answer that was out before it broke; never both. */
const isOneOf = ([status = 0, ...more]: readonly number[]) =>
  more.length === 0 && [400, 405, 413, 431].includes(status);

suite('a request that two servers could read differently', () => {
  test('gets one 400 and a closed connection, and a request behind it is not processed', async (t) => {
    const { hidden, answersTo } = await prepared(t);
    const length = hidden.length;
    const lines = {
      'a length and chunks': [`Content-Length: ${length + 5}`, chunked],
      'chunks and a length': [chunked, 'Content-Length: 4'],
      'two lengths': [`Content-Length: ${length}`, 'Content-Length: 0'],
      'the same length twice': [`Content-Length: ${length}`, `Content-Length: ${length}`],
      'two lengths in one line': [`Content-Length: ${length}, ${length}`],
      'two codings that end with chunked': ['Transfer-Encoding: gzip, chunked'],
      'a coding that is none, and chunked': ['Transfer-Encoding: identity', chunked],
      'chunked, and a coding that is none': [chunked, 'Transfer-Encoding: identity'],
      'chunked behind an empty element': ['Transfer-Encoding: ,chunked'],
      'chunked twice': ['Transfer-Encoding: chunked, chunked'],
      'a space before the colon': ['Transfer-Encoding : chunked'],
      'a folded line': ['Transfer-Encoding:', ' chunked'],
      'a first line that is folded': [` ${chunked}`],
      'a line behind a bare line feed': [`X: x\n${chunked}`],
      'a line behind a bare carriage return': [`X: x\r${chunked}`],
      'NUL in a value': ['X: a\0b'],
      'NUL in a name': ['X\0Y: a'],
      'a name of no letters': [': a'],
      'no colon': ['X'],
      'a second host': ['Host: other.test'],
      'the same host again': ['Host: vault.test'],
      'a second host in other letters': ['hOST: other.test'],
      'credentials twice': ['Authorization: Bearer a', 'authorization: Bearer b'],
      'the same credentials twice': ['Authorization: Bearer a', 'Authorization: Bearer a'],
      'credentials, and empty ones': ['Authorization: Bearer a', 'Authorization:'],
    };
    for (const [what, added] of Object.entries(lines)) {
      for (const body of [hidden, `0\r\n\r\n${hidden}`, chunk(hidden)]) {
        const answered = await answersTo([post(...added) + body], 'staying');
        assert.deepEqual(answered, { statuses: [400], downloads: 0 }, what);
      }
    }
    const texts = {
      'a host that is none': `GET ${health} HTTP/1.1\r\nHost: a b/c\r\n\r\n`,
      'a host with a foreign address': `GET ${health} HTTP/1.1\r\nHost: a@b\r\n\r\n`,
      'a whole address of another host': get().replace(health, `http://other.test${health}`),
      'a whole address of another port': get().replace(health, `http://vault.test:81${health}`),
      'a whole address with a name in front': get().replace(health, `http://a@vault.test${health}`),
      'no host': `GET ${health} HTTP/1.1\r\n\r\n`.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
      'HTTP/0.9': `GET ${health}\r\n`,
      'another major version': `GET ${health} HTTP/2.0\r\nHost: vault.test\r\n\r\n`,
      'another minor version': `GET ${health} HTTP/1.2\r\nHost: vault.test\r\n\r\n`,
      'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
      'tabs in place of spaces': `GET\t${health}\tHTTP/1.1\r\nHost: vault.test\r\n\r\n`,
      'line feeds alone': `GET ${health} HTTP/1.1\nHost: vault.test\n\n`,
      'a space behind the version': `GET ${health} HTTP/1.1 \r\nHost: vault.test\r\n\r\n`,
      'the protocol in small letters': `GET ${health} http/1.1\r\nHost: vault.test\r\n\r\n`,
      'chunks in HTTP/1.0': `POST ${health} HTTP/1.0\r\n${chunked}\r\n\r\n0\r\n\r\n`,
      'a tunnel': 'CONNECT vault.test:443 HTTP/1.1\r\nHost: vault.test:443\r\n\r\n',
      'a tunnel to a path': `CONNECT ${health} HTTP/1.1\r\nHost: vault.test\r\n\r\n`,
      'no HTTP at all': 'EHLO vault.test\r\n\r\n',
    };
    for (const [what, text] of Object.entries(texts)) {
      const answered = await answersTo([text + hidden], 'staying');
      assert.deepEqual(answered, { statuses: [400], downloads: 0 }, what);
    }
  });

  test('is rejected for an invalid Content-Length, chunk size or chunk end, without a request behind it', async (t) => {
    const { hidden, answersTo } = await prepared(t);
    const length = hidden.length;
    const hex = length.toString(16);
    for (const text of [
      `+${length}`,
      `-${length}`,
      `0x${hex}`,
      `${length}.0`,
      `${length}e0`,
      '',
      '-0',
      '1_0',
      '\xb2',
      `${length};`,
      `${length} 1`,
      '18446744073709551616',
      `${length}\x0b`,
    ]) {
      const answered = await answersTo([post(`Content-Length: ${text}`) + hidden], 'staying');
      assert.deepEqual(answered, { statuses: [400], downloads: 0 }, text);
    }
    // The path needs no body: its 405 may be out before the chunks turn out to be none, and is the answer then.
    for (const size of [
      `+${hex}`,
      `-${hex}`,
      `0x${hex}`,
      ` ${hex}`,
      `${hex} `,
      '',
      'g',
      `1${'0'.repeat(16)}`,
      `${hex};\n`,
      `${hex}\n`,
      '\r\n5',
      `${hex};${'a'.repeat(20_000)}`,
    ]) {
      const { statuses, downloads } = await answersTo(
        [`${post(chunked)}${size}\r\n${hidden}\r\n0\r\n\r\n`],
        'staying',
      );
      assert(isOneOf(statuses), `${size}: ${statuses}`);
      assert.equal(downloads, 0, size);
    }
    for (const end of [
      '0\r\nX : y\r\n\r\n',
      '0\r\nContent-Length: 4\r\n\r\n',
      '0\r\nTransfer-Encoding: chunked\r\n\r\n',
      '0\n\n',
      '0\r\r\n',
    ]) {
      const { statuses, downloads } = await answersTo(
        [`${post(chunked)}5\r\nhello\r\n${end}${hidden}`],
        'staying',
      );
      assert(isOneOf(statuses), `${JSON.stringify(end)}: ${statuses}`);
      assert.equal(downloads, 0, end);
    }
  });
});

suite('an unambiguous request', () => {
  test('gets one response, and a request behind it gets a response of its own', async (t) => {
    const { hidden, answersTo } = await prepared(t);
    const cases: Record<string, [text: string, statuses: number[], downloads: number]> = {
      'a body of the length it says': [post(`Content-Length: ${hidden.length}`) + hidden, [405], 0],
      'a length with zeros in front': [post(`Content-Length: 00${hidden.length}`) + hidden, [405], 0],
      'a body in chunks': [post(chunked) + chunk(hidden), [405], 0],
      'chunks, and a request behind them': [`${post(chunked)}0\r\n\r\n${hidden}`, [405, 200], 1],
      'chunks with extensions': [
        `${post('tRANSFER-eNCODING:\tCHUNKED ')}1;a="b"\r\nx\r\n0\r\n\r\n${hidden}`,
        [405, 200],
        1,
      ],
      'a body for GET': [get(`Content-Length: ${hidden.length}`) + hidden, [200], 0],
      'chunks for GET': [get(chunked) + chunk(hidden), [200], 0],
      'a body for DELETE': [`DELETE${post(`Content-Length: ${hidden.length}`).slice(4)}${hidden}`, [405], 0],
      'two requests': [get() + hidden, [200, 200], 1],
      'one that only looks like a length': [get(`Content_Length: ${hidden.length}`) + hidden, [200, 200], 1],
      'an expectation': [
        post('Expect: 100-continue', 'Content-Length: 5').concat('hello', hidden),
        [100, 405, 200],
        1,
      ],
      'an expectation and no body': [get('Expect: 100-continue') + hidden, [100, 200, 200], 1],
      'an offer to upgrade': [get('Upgrade: h2c', 'Connection: Upgrade') + hidden, [200], 0],
      'an offer of a web socket': [get('Upgrade: websocket', 'Connection: Upgrade') + hidden, [200], 0],
      'an offer with a body': [
        post('Upgrade: h2c', 'Connection: Upgrade', chunked) + chunk(hidden),
        [405],
        0,
      ],
      'the last one': [get('Connection: close') + hidden, [200], 0],
      'a request for everything': [`OPTIONS * HTTP/1.1\r\nHost: vault.test\r\n\r\n${hidden}`, [400, 200], 1],
      'a trace': [`TRACE ${health} HTTP/1.1\r\nHost: vault.test\r\nX: y\r\n\r\n`, [405], 0],
      'a whole address of this host': [get().replace(health, `HTTP://Vault.Test${health}`), [200], 0],
      'a whole address without a host, in HTTP/1.0': [
        `GET http://other.test${health} HTTP/1.0\r\n\r\n`,
        [200],
        0,
      ],
      'HTTP/1.0': [`GET ${health} HTTP/1.0\r\n\r\n${hidden}`, [200], 0],
      'empty lines before it': [`\r\n\r\n${hidden}`, [200], 1],
      'one that breaks off behind a good one': [`${get()}GET /api`, [200, 400], 0],
      'no request behind a good one': [`${hidden}BAD\r\n\r\n${hidden}`, [200, 400], 1],
      'more headers than anybody sends': [
        get(...Array.from({ length: 1500 }, (_, at) => `X${at}: 1`)) + hidden,
        [431, 200],
        1,
      ],
      'a line that is too long': [get(`X: ${'a'.repeat(17_000)}`) + hidden, [431], 0],
    };
    for (const [what, [text, statuses, downloads]] of Object.entries(cases)) {
      assert.deepEqual(await answersTo([text]), { statuses, downloads }, what);
    }
  });

  test('with an Upgrade header and another request behind it gets one response and a closed connection', async (t) => {
    const { answersTo } = await prepared(t);
    const text = get('Upgrade: h2c', 'Connection: Upgrade') + get();
    assert.deepEqual(await answersTo([text], 'staying'), { statuses: [200], downloads: 0 });
  });
});

suite('responses', () => {
  test('keep their order if invalid bytes follow a slow request', async (t) => {
    const { server, hidden } = await prepared(t);
    const gate = Promise.withResolvers<void>();
    const waiting = Promise.withResolvers<void>();
    const append = server.vault.db.append.bind(server.vault.db);
    server.vault.db.append = async (events) => {
      waiting.resolve();
      await gate.promise;
      return append(events);
    };
    const socket = await open(server.url);
    const all = readToEnd(socket);
    socket.write(hidden, 'latin1');
    await waiting.promise;
    socket.write('BAD\r\n\r\nBAD\r\n\r\n');
    while (socket.bytesWritten < hidden.length + 14) await once(socket, 'drain');
    gate.resolve();
    const answers = answersIn(await all);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 400],
    );
    assert.match(answers[0]?.body ?? '', /PRIVATE KEY/);
    assert.equal((await server.get(health)).status, 200);
  });

  test('to CONNECT requests that are reset immediately leave the server running', async (t) => {
    const { server } = await prepared(t);
    for (let count = 0; count < 20; count += 1) {
      const socket = await open(server.url);
      socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nmore and more');
      socket.resetAndDestroy();
    }
    assert.equal((await server.get(health)).status, 200);
    assert.doesNotMatch(server.log.lines.join(), /"level":"error"/);
  });
});

/** Header lines about the body, and what they do to the request; `length` is that of the body. */
const framing = {
  length: ['Content-Length: #', 'content-length:#', 'CONTENT-LENGTH: \t# ', 'Content-Length: 000#'],
  chunks: [
    chunked,
    'transfer-encoding:chunked',
    'Transfer-Encoding:\tCHUNKED ',
    'TRANSFER-ENCODING: Chunked',
  ],
  nothing: [
    'X-Content-Length: 3',
    'Content_Length: 3',
    'Transfer_Encoding: chunked',
    'TE: trailers',
    'X: Content-Length: 3',
    'Content-Lengths: 1',
  ],
  refused: [
    ...[
      'Content-Length : #',
      'Content-Length: +#',
      'Content-Length: #, #',
      'Content-Length: 0x#',
      ' Content-Length: #',
      'X: y\nContent-Length: #',
    ],
    ...[
      'Transfer-Encoding : chunked',
      'Transfer-Encoding: xchunked',
      'Transfer-Encoding: chunked, identity',
      'Transfer-Encoding: gzip, chunked',
    ],
    ...[
      'Transfer-Encoding:\r\n chunked',
      'Transfer-Encoding: "chunked"',
      'Transfer-Encoding: chunked;q=1',
      'Transfer-Encoding: \x0bchunked',
    ],
    ...[
      'Host: other.test',
      'X\0: y',
      'X: y\rTransfer-Encoding: chunked',
      'Transfer-Encoding:',
      'Content-Length:',
    ],
  ],
} as const;

type Effect = keyof typeof framing;

suite('arbitrary bytes on a connection', () => {
  const line = fc
    .constantFrom<Effect>('length', 'length', 'chunks', 'chunks', 'nothing', 'refused')
    .chain((effect) => fc.constantFrom(...framing[effect]).map((text) => ({ effect, text })));
  const bodies = fc.constantFrom('plain', 'behind chunks', 'in chunks');

  /** RFC 9112 §6.3, for a path that answers 405 without a look at the body. */
  function expected(effects: readonly Effect[], body: string): Answered {
    const count = (effect: Effect) => effects.filter((one) => one === effect).length;
    const refused = count('refused') > 0 || count('length') + count('chunks') > 1;
    if (refused) return { statuses: [400], downloads: 0 };
    if (count('length') === 1) return { statuses: [405], downloads: 0 };
    const isRequestBehind = count('chunks') === 1 ? body === 'behind chunks' : body === 'plain';
    if (isRequestBehind) return { statuses: [405, 200], downloads: 1 };
    return { statuses: count('chunks') === 1 ? [405] : [405, 400], downloads: 0 };
  }

  /** The lines are fine, and then there are no chunks. */
  function isBroken(effects: readonly Effect[], body: string): boolean {
    const about = effects.filter((one) => one !== 'nothing');
    return about.length === 1 && about[0] === 'chunks' && body === 'plain';
  }

  test('framing headers are read as RFC 9112 specifies or rejected, however the request is split into packets', async (t) => {
    const { hidden, answersTo } = await prepared(t);
    const cuts = fc.array(fc.nat(600), { maxLength: 4 });
    const property = fc.asyncProperty(
      fc.array(line, { maxLength: 3 }),
      bodies,
      cuts,
      async (lines, body, places) => {
        const content =
          { plain: hidden, 'behind chunks': `0\r\n\r\n${hidden}`, 'in chunks': chunk(hidden) }[body] ?? '';
        const text = post(...lines.map((one) => one.text.replaceAll('#', String(content.length)))) + content;
        const sorted = [0, ...places.map((at) => at % text.length).toSorted((a, b) => a - b), text.length];
        const pieces = sorted.slice(1).map((end, index) => text.slice(sorted[index], end));
        const effects = lines.map(({ effect }) => effect);
        const answered = await answersTo(pieces);
        if (isBroken(effects, body))
          assert(isOneOf(answered.statuses) && answered.downloads === 0, `${answered.statuses}`);
        else assert.deepEqual(answered, expected(effects, body));
      },
    );
    await fc.assert(property, fuzzRuns(250));
  });

  test('arbitrary bytes after a request get no 5xx, and the next connection is served', async (t) => {
    const { hidden, answersTo } = await prepared(t);
    const scrap = fc.oneof(
      fc.constantFrom(
        '\r\n',
        '\n',
        '\r',
        ' ',
        '\0',
        ':',
        'GET ',
        'POST / HTTP/1.1',
        'Host: x',
        chunked,
        'Content-Length: 1',
        '0\r\n\r\n',
        'HTTP/1.1',
        hidden,
      ),
      fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    );
    const property = fc.asyncProperty(fc.array(scrap, { maxLength: 12 }), async (scraps) => {
      const { statuses } = await answersTo([get() + scraps.join('')]);
      assert.equal(statuses[0], 200);
      assert(
        statuses.every((status) => status < 500),
        `${statuses}`,
      );
      assert.deepEqual((await answersTo([get('Connection: close')])).statuses, [200]);
    });
    await fc.assert(property, fuzzRuns(150));
  });
});
