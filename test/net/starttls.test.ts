/** The eight protocols that begin in plain text: scripted servers, some of them hostile, and the real handshake. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { before, suite, test } from 'node:test';
import { type StartTls, startTlsProtocols } from '../../src/net/starttls.ts';
import { maxPlainBytes } from '../../src/net/starttls-wire.ts';
import { ProbeFailure, probeLimit, probeTls } from '../../src/net/tls-probe.ts';
import { makeChain } from '../harness/ca/private-chain.ts';
import {
  closed,
  type Identity,
  identityOf,
  type PlainSide,
  type Script,
  scriptedServer,
} from '../harness/endpoints/tls-servers.ts';
import { loopbackGuard } from '../harness/loopback-guard.ts';
import { TestWorld } from '../harness/test-world.ts';

const { signal } = new AbortController();
let identity: Identity;
before(async () => {
  const { leaf, intermediate } = await makeChain();
  identity = identityOf(leaf, intermediate);
});

const probe = (
  starttls: StartTls,
  port: number,
  { world = new TestWorld(), serverName = 'www.example.com' } = {},
) => probeTls({ world, guard: loopbackGuard }, { host: '127.0.0.1', port, serverName, starttls }, signal);

async function failure(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => assert.fail('the probe found a certificate'),
    (reason: unknown) => reason,
  );
  assert(error instanceof ProbeFailure, String(error));
  return error.message;
}

const xmppNamespace = 'urn:ietf:params:xml:ns:xmpp-tls';
const xmppHeader =
  "<?xml version='1.0'?><stream:stream id='1' from='www.example.com' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const ldapOk = Buffer.from('300c02010178070a010004000400', 'hex');
const plainSuffix = { text: '\r\n', bytes: Buffer.from([0]) };

/** The first packet of a MySQL server with these capabilities (lower half). */
function mysqlGreeting(capabilities = 0xffff, version = '8.4.0-test'): Buffer {
  const body = Buffer.concat([
    Buffer.from([10]),
    Buffer.from(`${version}\0`, 'latin1'),
    Buffer.from([7, 0, 0, 0]),
    Buffer.from('12345678\0', 'latin1'),
    Buffer.from([capabilities & 0xff, capabilities >> 8, 45, 2, 0, 0xff, 0xdf, 21]),
    Buffer.alloc(10),
    Buffer.from('123456789012\0caching_sha2_password\0', 'latin1'),
  ]);
  const head = Buffer.alloc(4);
  head.writeUIntLE(body.length, 0, 3);
  return Buffer.concat([head, body]);
}

/** The dialogue of a well-behaved server: what it sends, each after what it waits for. */
type Dialogue = readonly { readonly after?: string | number; readonly send: string | Buffer }[];

const dialogues: Readonly<Record<StartTls, Dialogue>> = {
  smtp: [
    { send: '220-mx.example.com ESMTP\r\n220 at your service\r\n' },
    { after: '\r\n', send: '250-mx.example.com\r\n250-PIPELINING\r\n250-STARTTLS\r\n250 8BITMIME\r\n' },
    { after: '\r\n', send: '220 2.0.0 Ready to start TLS\r\n' },
  ],
  imap: [
    { send: '* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] ready\r\n' },
    { after: '\r\n', send: '* CAPABILITY IMAP4rev1\r\nv1 OK Begin TLS negotiation now.\r\n' },
  ],
  pop3: [{ send: '+OK ready <1@example.com>\r\n' }, { after: '\r\n', send: '+OK Begin TLS\r\n' }],
  ldap: [{ after: 31, send: ldapOk }],
  ftp: [
    { send: '220-Welcome\r\n 220 is not the end\r\n220 ready\r\n' },
    { after: '\r\n', send: '234 Proceed with negotiation.\r\n' },
  ],
  xmpp: [
    {
      after: "streams'>",
      send: `${xmppHeader}<stream:features><starttls xmlns='${xmppNamespace}'><required/></starttls></stream:features>`,
    },
    { after: '/>', send: `<proceed xmlns='${xmppNamespace}'/>` },
  ],
  postgres: [{ after: 8, send: 'S' }],
  mysql: [{ send: mysqlGreeting() }, { after: 36, send: '' }],
};

/** What a client must send to such a server, as text or in hexadecimal. */
const requests: Readonly<Record<StartTls, readonly string[]>> = {
  smtp: ['EHLO certificate-vault.invalid\r\n', 'STARTTLS\r\n'],
  imap: ['v1 STARTTLS\r\n'],
  pop3: ['STLS\r\n'],
  ldap: ['301d02010177188016312e332e362e312e342e312e313436362e3230303337'],
  ftp: ['AUTH TLS\r\n'],
  xmpp: [
    "<?xml version='1.0'?><stream:stream to='www.example.com' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>",
    `<starttls xmlns='${xmppNamespace}'/>`,
  ],
  postgres: ['0000000804d2162f'],
  mysql: [`20000001${'008a0000'}${'00000001'}2d${'00'.repeat(23)}`],
};

/** Follows a dialogue; `heard` collects what the client sends. */
async function follow(client: PlainSide, dialogue: Dialogue, heard: string[] = []): Promise<undefined> {
  for (const { after, send } of dialogue) {
    if (typeof after === 'string') heard.push(await client.until(after));
    if (typeof after === 'number') heard.push((await client.bytes(after)).toString('hex'));
    await client.send(send);
  }
}

/** The same dialogue with something else as its last answer. */
const endingWith = (protocol: StartTls, send: string | Buffer): Script => {
  const dialogue = dialogues[protocol];
  return (client) => follow(client, [...dialogue.slice(0, -1), { ...dialogue.at(-1), send }]);
};

/** What a server sends, without waiting for the client. */
const talking =
  (...parts: readonly (string | Buffer)[]): Script =>
  async (client) => {
    for (const part of parts) await client.send(part);
    return 'stay';
  };

suite('STARTTLS', () => {
  for (const protocol of startTlsProtocols) {
    test(`of ${protocol} sends what the protocol prescribes and leads to the certificate`, async (t) => {
      const heard: string[] = [];
      const { port } = await scriptedServer(t, identity, (client) =>
        follow(client, dialogues[protocol], heard),
      );
      const { certificates, tlsVersion } = await probe(protocol, port);
      assert.equal(certificates.length, 2);
      assert(certificates[0].raw.equals(new X509Certificate(identity.cert).raw));
      assert.equal(tlsVersion, 'TLSv1.3');
      assert.deepEqual(heard, requests[protocol]);
    });

    test(`of ${protocol} works with a server that sends byte by byte`, async (t) => {
      const { port } = await scriptedServer(t, identity, (client) => {
        client.isSlow = true;
        return follow(client, dialogues[protocol]);
      });
      assert.equal((await probe(protocol, port)).certificates.length, 2);
    });

    test(`of ${protocol} refuses plain text that comes with the last answer`, async (t) => {
      const added =
        typeof dialogues[protocol].at(-1)?.send === 'string' ? plainSuffix.text : plainSuffix.bytes;
      const script: Script = async (client) => {
        const [first = assert.fail(), ...others] = dialogues[protocol];
        // The client of MySQL sends its request and begins TLS: what is added comes with the greeting.
        const dialogue =
          protocol === 'mysql'
            ? [{ send: Buffer.concat([mysqlGreeting(), plainSuffix.bytes]) }]
            : [first, ...others];
        const last = dialogue.at(-1) ?? assert.fail();
        const send = Buffer.concat([Buffer.from(last.send), Buffer.from(added)]);
        return follow(client, [...dialogue.slice(0, -1), { ...last, send }]);
      };
      const { port } = await scriptedServer(t, identity, script);
      assert.equal(await failure(probe(protocol, port)), 'the server sent more before TLS than its reply');
    });

    test(`of ${protocol} fails when the server closes the connection`, async (t) => {
      const { port } = await scriptedServer(t, identity, async (client) => {
        client.socket.end();
        return 'stay';
      });
      assert.match(await failure(probe(protocol, port)), /^the server closed the connection$/);
    });

    test(`of ${protocol} with a server that is silent ends after ten seconds`, async (t) => {
      const { port, sockets } = await scriptedServer(t, identity, async () => 'stay');
      const world = new TestWorld();
      const failed = failure(probe(protocol, port, { world }));
      await world.sleeping(1);
      const connected = await acceptedBy(sockets);
      world.advance(probeLimit);
      assert.match(await failed, /^no (TLS handshake|connection) within 10 s$/);
      await closed(connected);
    });
  }
});

/** The first connection of a server. */
async function acceptedBy(sockets: readonly Socket[]): Promise<Socket> {
  for (;;) {
    const [first] = sockets;
    if (first !== undefined) return first.resume();
    await new Promise(setImmediate);
  }
}

type Bad = readonly [what: string, script: Script, reason: string];

const never = 'the server does not offer';
const bad: Readonly<Record<StartTls, readonly Bad[]>> = {
  smtp: [
    ['rejects the client', talking('554-go\r\n554 away\r\n'), 'the server sent "554 away" as its greeting'],
    ['speaks another protocol', talking('* OK IMAP4\r\n'), 'the server sent "* OK IMAP4" as its greeting'],
    ['offers no STARTTLS', talking('220 a\r\n', '250-a\r\n250 STARTTLSX\r\n'), `${never} STARTTLS`],
    ['offers it only in a comment', talking('220 a\r\n', '250 a STARTTLS\r\n'), `${never} STARTTLS`],
    ['rejects EHLO', talking('220 a\r\n', '502 no\r\n'), 'the server sent "502 no" in reply to EHLO'],
    [
      'rejects STARTTLS',
      endingWith('smtp', '454 4.7.0 TLS not available\r\n'),
      'the server sent "454 4.7.0 TLS not available" in reply to STARTTLS',
    ],
    [
      'sends control characters',
      talking('\x1b[2J\x00secret\u009b31m\r\n'),
      'the server sent "[2J secret 31m" as its greeting',
    ],
  ],
  imap: [
    ['closes in its greeting', talking('* BYE no\r\n'), 'the server sent "* BYE no" as its greeting'],
    ['sends a word like OK', talking('* OKAY\r\n'), 'the server sent "* OKAY" as its greeting'],
    [
      'rejects STARTTLS',
      endingWith('imap', '* x\r\nv1 BAD no\r\n'),
      'the server sent "v1 BAD no" in reply to STARTTLS',
    ],
    [
      'replies to another tag',
      endingWith('imap', 'v2 OK\r\n'),
      'the server sent "v2 OK" in reply to STARTTLS',
    ],
  ],
  pop3: [
    ['rejects the client', talking('-ERR busy\r\n'), 'the server sent "-ERR busy" as its greeting'],
    ['rejects STLS', endingWith('pop3', '-ERR no\r\n'), 'the server sent "-ERR no" in reply to STLS'],
  ],
  ldap: [
    [
      'rejects StartTLS',
      endingWith('ldap', Buffer.from('300c02010178070a010204000400', 'hex')),
      'the server rejected StartTLS with result code 2',
    ],
    [
      'sends no result',
      endingWith('ldap', Buffer.from('300502010178000000', 'hex')),
      'the server rejected StartTLS with result code undefined',
    ],
    [
      'replies to another message',
      endingWith('ldap', Buffer.from('300c02010278070a010004000400', 'hex')),
      'the server sent no LDAP response to StartTLS',
    ],
    [
      'sends an empty message',
      endingWith('ldap', Buffer.from('3000', 'hex')),
      'the server sent no LDAP response to StartTLS',
    ],
    ['speaks another protocol', talking('220 a\r\n'), 'the server does not speak LDAP'],
    ['sends an indefinite length', talking(Buffer.from('3080', 'hex')), 'the server does not speak LDAP'],
    [
      'sends a length of 5 bytes',
      talking(Buffer.from('3085ffffffffff', 'hex')),
      'the server does not speak LDAP',
    ],
    [
      'announces 2 GiB',
      talking(Buffer.from('30847fffffff', 'hex')),
      'the server sent more than 16 KiB before TLS',
    ],
  ],
  ftp: [
    ['is full', talking('421 too many\r\n'), 'the server sent "421 too many" as its greeting'],
    ['rejects AUTH', endingWith('ftp', '502 no\r\n'), 'the server sent "502 no" in reply to AUTH TLS'],
  ],
  xmpp: [
    ['offers no TLS', talking(`${xmppHeader}<stream:features></stream:features>`), `${never} TLS`],
    [
      'rejects starttls',
      endingWith('xmpp', `<failure xmlns='${xmppNamespace}'/>`),
      `the server sent "<failure xmlns='${xmppNamespace}'/>" in reply to starttls`,
    ],
  ],
  postgres: [
    ['offers no TLS', endingWith('postgres', 'N'), `${never} TLS`],
    ['sends an error', endingWith('postgres', 'E'), 'the server does not speak the protocol of PostgreSQL'],
  ],
  mysql: [
    ['offers no TLS', talking(mysqlGreeting(0xf7ff)), `${never} TLS`],
    [
      'blocks the host',
      talking(Buffer.concat([Buffer.from([18, 0, 0, 0, 0xff, 0x69, 0x04]), Buffer.from('Host is blocked')])),
      'the server refused the connection: "Host is blocked"',
    ],
    [
      'sends an older protocol',
      talking(Buffer.from('0200000009610000', 'hex')),
      'the server does not speak the protocol of MySQL',
    ],
    [
      'sends no end of its version',
      talking(Buffer.from('030000000a6161', 'hex')),
      'the server does not speak the protocol of MySQL',
    ],
    [
      'sends too little',
      talking(Buffer.from('040000000a610000', 'hex')),
      'the server does not speak the protocol of MySQL',
    ],
    [
      'sends an empty packet',
      talking(Buffer.from('00000000', 'hex')),
      'the server does not speak the protocol of MySQL',
    ],
    [
      'announces 16 MiB',
      talking(Buffer.from('ffffff00', 'hex')),
      'the server sent more than 16 KiB before TLS',
    ],
  ],
};

for (const protocol of startTlsProtocols) {
  suite(`a probe of a server of ${protocol}`, () => {
    for (const [what, script, reason] of bad[protocol]) {
      test(`fails with a reason if the server ${what}`, async (t) => {
        const { port } = await scriptedServer(t, identity, script);
        assert.equal(await failure(probe(protocol, port)), reason);
      });
    }
  });
}

test('the response of Active Directory, whose lengths take four bytes, is accepted', async (t) => {
  const oid = Buffer.from('1.3.6.1.4.1.1466.20037');
  const script = endingWith(
    'ldap',
    Buffer.concat([Buffer.from('308400000028020101788400' + '00001f0a0100040004008a16', 'hex'), oid]),
  );
  const { port } = await scriptedServer(t, identity, script);
  assert.equal((await probe('ldap', port)).certificates.length, 2);
});

test('an XMPP server may write its answer with an end tag of its own', async (t) => {
  const script = endingWith('xmpp', `\n<proceed xmlns='${xmppNamespace}'></proceed>`);
  const { port } = await scriptedServer(t, identity, script);
  assert.equal((await probe('xmpp', port)).certificates.length, 2);
});

test('an XMPP server gets the address, if the handshake has no server name', async (t) => {
  const heard: string[] = [];
  const { port } = await scriptedServer(t, identity, (client) => follow(client, dialogues.xmpp, heard));
  await probe('xmpp', port, { serverName: '' });
  assert.match(heard[0] ?? '', / to='127\.0\.0\.1' /);
});

/** Without end, what a protocol lets a server repeat before the client may continue. */
const floods: Readonly<Record<string, readonly [StartTls, begin: string, again: string]>> = {
  'a greeting of SMTP with lines without end': ['smtp', '', '220-more\r\n'],
  'a line of SMTP without end': ['smtp', '220 ', 'x'],
  'a reply to EHLO without end': ['smtp', '220 a\r\n', '250-STARTTLS\r\n'],
  'untagged responses of IMAP without end': ['imap', '* OK\r\n', '* x\r\n'],
  'a line of POP3 without end': ['pop3', '+OK', ' '],
  'a reply of FTP without a last line': ['ftp', '220-a\r\n', ' 220 a\r\n'],
  'features of XMPP without end': ['xmpp', xmppHeader, '<stream:features>'],
  'a message of LDAP that is longer than announced': [
    'ldap',
    '\x30\x0c\x02\x01\x01x\x07\x0a\x01\x00\x04\x00\x04\x00',
    '\0',
  ],
  'more than one byte of PostgreSQL': ['postgres', 'S', 'S'],
  'a greeting of MySQL that is followed by others': ['mysql', mysqlGreeting().toString('latin1'), '\0'],
};

/** More than the buffers of both kernels hold. */
const flood = 64 * 1024 * 1024;

for (const [what, [protocol, begin, again]] of Object.entries(floods)) {
  test(`${what} is cut off, and most of it is never read`, async (t) => {
    let sent = 0;
    const portion = Buffer.from(again.repeat(Math.ceil(maxPlainBytes / again.length)), 'latin1');
    const ended = Promise.withResolvers<void>();
    const { port } = await scriptedServer(t, identity, async ({ socket }) => {
      socket.once('close', ended.resolve).write(Buffer.from(begin, 'latin1'));
      while (!socket.destroyed && sent < flood) {
        sent += portion.length;
        if (!socket.write(portion)) await Promise.race([once(socket, 'drain'), ended.promise]);
      }
      return 'stay';
    });
    assert.match(
      await failure(probe(protocol, port)),
      /^the server sent more (than 16 KiB before TLS|before TLS than its reply)$/,
    );
    await ended.promise;
    assert(sent < flood, `${sent} bytes were taken`);
  });
}

test('a probe that is canceled while the server is silent ends and closes its connection', async (t) => {
  const { port, sockets } = await scriptedServer(t, identity, async () => 'stay');
  const stop = new AbortController();
  const target = { host: '127.0.0.1', port, serverName: '', starttls: 'smtp' } as const;
  const failed = failure(probeTls({ world: new TestWorld(), guard: loopbackGuard }, target, stop.signal));
  const connected = await acceptedBy(sockets);
  stop.abort();
  assert.equal(await failed, 'the check was canceled');
  await closed(connected);
});
