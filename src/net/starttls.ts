/** How a connection of each protocol that begins in plain text is switched to TLS. */
import { shortened } from '../base/printable-text.ts';
import { StartTlsFailure, type Wire } from './starttls-wire.ts';

/** The protocols, as options and the API take them. */
export const startTlsProtocols = [
  'smtp',
  'imap',
  'pop3',
  'ldap',
  'ftp',
  'xmpp',
  'postgres',
  'mysql',
] as const;

export type StartTls = (typeof startTlsProtocols)[number];

/** Asks the server to continue with TLS; `name` is the server name, or its address. Throws StartTlsFailure. */
export async function startTls(protocol: StartTls, wire: Wire, name: string): Promise<void> {
  await switches[protocol](wire, name);
}

const switches: Readonly<Record<StartTls, (wire: Wire, name: string) => Promise<void>>> = {
  /** RFC 3207. */
  smtp: async (wire) => {
    await expectCode(wire, '220', 'the greeting');
    wire.send('EHLO certificate-vault.invalid\r\n');
    const lines = await expectCode(wire, '250', 'EHLO');
    if (!lines.some((line) => /^250[ -]STARTTLS\b/i.test(line))) throw notOffered('STARTTLS');
    wire.send('STARTTLS\r\n');
    await expectCode(wire, '220', 'STARTTLS');
  },
  /** RFC 9051 §6.2.1. */
  imap: async (wire) => {
    const greeting = await wire.line();
    if (!/^\* (?:OK|PREAUTH)\b/i.test(greeting)) throw unexpected('the greeting', greeting);
    wire.send('v1 STARTTLS\r\n');
    let line = await wire.line();
    while (line.startsWith('* ')) line = await wire.line();
    if (!/^v1 OK\b/i.test(line)) throw unexpected('STARTTLS', line);
  },
  /** RFC 2595 §4. */
  pop3: async (wire) => {
    const greeting = await wire.line();
    if (!greeting.startsWith('+OK')) throw unexpected('the greeting', greeting);
    wire.send('STLS\r\n');
    const line = await wire.line();
    if (!line.startsWith('+OK')) throw unexpected('STLS', line);
  },
  /** RFC 4511 §4.14: an ExtendedRequest, and its response with the result code 0. */
  ldap: async (wire) => {
    const oid = Buffer.from('1.3.6.1.4.1.1466.20037');
    const request = element(0x77, element(0x80, oid));
    wire.send(element(0x30, Buffer.concat([Buffer.from([0x02, 0x01, 0x01]), request])));
    const message = await nextSequence(wire);
    const [, , , type] = message;
    if (!message.subarray(0, 3).equals(Buffer.from([0x02, 0x01, 0x01])) || type !== 0x78) {
      throw new StartTlsFailure('the server sent no LDAP response to StartTLS');
    }
    const { content } = readElement(message.subarray(3));
    const { tag, content: code } = readElement(content);
    const result = tag === 0x0a && code.length === 1 ? code[0] : undefined;
    if (result !== 0) throw new StartTlsFailure(`the server rejected StartTLS with result code ${result}`);
  },
  /** RFC 4217 §4. */
  ftp: async (wire) => {
    await expectCode(wire, '220', 'the greeting');
    wire.send('AUTH TLS\r\n');
    await expectCode(wire, '234', 'AUTH TLS');
  },
  /** RFC 6120 §5. */
  xmpp: async (wire, name) => {
    const to = name.replace(/[^A-Za-z0-9.:_-]/g, '');
    wire.send(
      `<?xml version='1.0'?><stream:stream to='${to}' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>`,
    );
    const features = await wire.until('</stream:features>');
    if (!features.includes('urn:ietf:params:xml:ns:xmpp-tls')) throw notOffered('TLS');
    wire.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
    const reply = await wire.until('>');
    if (!/^\s*<proceed\b/.test(reply)) throw unexpected('starttls', reply);
    // The element may be written with an end tag of its own.
    if (!reply.endsWith('/>')) await wire.until('</proceed>');
  },
  /** An SSLRequest, as libpq sends it. */
  postgres: async (wire) => {
    wire.send(Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]));
    const [reply] = await wire.bytes(1);
    if (reply === 0x4e) throw notOffered('TLS');
    if (reply !== 0x53) throw new StartTlsFailure('the server does not speak the protocol of PostgreSQL');
  },
  /** An SSLRequest after the initial handshake packet of protocol 10. */
  mysql: async (wire) => {
    const head = await wire.bytes(4);
    const size = head.readUIntLE(0, 3);
    const packet = await wire.bytes(size);
    if (packet[0] === 0xff) {
      throw new StartTlsFailure(`the server refused the connection: ${quoted(packet.toString('latin1', 3))}`);
    }
    const end = packet.indexOf(0, 1);
    // Version text, thread id (4), part of the scramble (8), filler (1), then the lower half of the capabilities.
    const capabilities = end === -1 ? end : end + 1 + 4 + 8 + 1;
    if (packet[0] !== 10 || capabilities === -1 || capabilities + 2 > packet.length) {
      throw new StartTlsFailure('the server does not speak the protocol of MySQL');
    }
    if ((packet.readUInt16LE(capabilities) & clientSsl) === 0) throw notOffered('TLS');
    const request = Buffer.alloc(4 + 32);
    request.writeUIntLE(32, 0, 3);
    request[3] = ((head[3] ?? 0) + 1) % 256;
    request.writeUInt32LE(clientProtocol41 | clientSsl | clientSecureConnection, 4);
    request.writeUInt32LE(1 << 24, 8);
    // utf8mb4_general_ci
    request[12] = 45;
    wire.send(request);
  },
};

const clientProtocol41 = 0x200;
const clientSsl = 0x800;
const clientSecureConnection = 0x8000;

/** A reply of SMTP or FTP, whose last line has a space after the code. Throws if the code is another one. */
async function expectCode(wire: Wire, code: string, request: string): Promise<string[]> {
  const lines: string[] = [];
  for (;;) {
    const line = await wire.line();
    lines.push(line);
    const isMore = /^\d{3}-/.test(line) || (lines.length > 1 && !/^\d{3}(?: |$)/.test(line));
    if (isMore) continue;
    if (!line.startsWith(code)) throw unexpected(request, line);
    return lines;
  }
}

/** The content of the next SEQUENCE. */
async function nextSequence(wire: Wire): Promise<Buffer> {
  const [tag, first = 0] = await wire.bytes(2);
  if (tag !== 0x30) throw new StartTlsFailure('the server does not speak LDAP');
  if (first < 0x80) return wire.bytes(first);
  const count = first & 0x7f;
  if (count === 0 || count > 4) throw new StartTlsFailure('the server does not speak LDAP');
  return wire.bytes((await wire.bytes(count)).readUIntBE(0, count));
}

/** The first BER element of the bytes, with a length of at most four bytes. */
function readElement(bytes: Buffer): { readonly tag: number; readonly content: Buffer } {
  const [tag = 0, first = 0] = bytes;
  const count = first < 0x80 ? 0 : first & 0x7f;
  if (count > 4 || bytes.length < 2 + count) return { tag, content: Buffer.alloc(0) };
  const size = count === 0 ? first : bytes.readUIntBE(2, count);
  return { tag, content: bytes.subarray(2 + count, 2 + count + size) };
}

/** A BER element whose content is shorter than 128 bytes. */
function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, content.length]), content]);
}

function notOffered(what: string): StartTlsFailure {
  return new StartTlsFailure(`the server does not offer ${what}`);
}

function unexpected(request: string, line: string): StartTlsFailure {
  const place = request === 'the greeting' ? 'as its greeting' : `in reply to ${request}`;
  return new StartTlsFailure(`the server sent ${quoted(line)} ${place}`);
}

function quoted(line: string): string {
  return `"${shortened(line, 100)}"`;
}
