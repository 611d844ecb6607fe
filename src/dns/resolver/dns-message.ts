/**
 * DNS messages as bytes (RFC 1035 §4): written for the requests that the vault makes itself, read with care, because
 * anybody may have sent them.
 */
import { encodeName, readName } from './dns-name.ts';

export const recordType = { ns: 2, soa: 6, txt: 16, tsig: 250 } as const;
export const recordClass = { in: 1, none: 254, any: 255 } as const;
export const opcode = { query: 0, update: 5 } as const;

export const headerSize = 12;

export type Question = { readonly name: string; readonly type: number };

export type ResourceRecord = {
  /** In lower case, without a dot at the end. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** seconds */
  readonly ttl: number;
  /** The data as it stands in the message: names in it may be compressed. */
  readonly data: Buffer;
};

export type DnsRequest = {
  readonly id: number;
  readonly opcode: number;
  /** For an update it names the zone (RFC 2136 §2.3). */
  readonly question: Question;
  /** The third section: what an update changes (RFC 2136 §2.5). */
  readonly updates?: readonly ResourceRecord[];
};

export type DnsAnswer = {
  readonly id: number;
  readonly isAnswer: boolean;
  readonly opcode: number;
  readonly rcode: number;
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
  /** Where the last record of the message begins; its length where there is none. */
  readonly lastRecordAt: number;
};

/** The bytes of a request, without the length that TCP puts before them. Throws DnsProviderError for what is no name. */
export function encodeRequest(request: DnsRequest): Buffer {
  const updates = request.updates ?? [];
  const header = Buffer.alloc(headerSize);
  header.writeUInt16BE(request.id, 0);
  header.writeUInt16BE(request.opcode << 11, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(updates.length, 8);
  const end = Buffer.alloc(4);
  end.writeUInt16BE(request.question.type, 0);
  end.writeUInt16BE(recordClass.in, 2);
  return Buffer.concat([header, encodeName(request.question.name), end, ...updates.map(encodeRecord)]);
}

/** One record as it stands in a message. */
export function encodeRecord({ name, type, class: recordsClass, ttl, data }: ResourceRecord): Buffer {
  const middle = Buffer.alloc(10);
  middle.writeUInt16BE(type, 0);
  middle.writeUInt16BE(recordsClass, 2);
  middle.writeUInt32BE(ttl, 4);
  middle.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), middle, data]);
}

/** The data of a TXT record (RFC 1035 §3.3.14): strings of at most 255 bytes, each with its length before it. */
export function encodeTxt(value: string): Buffer {
  const bytes = Buffer.from(value);
  const count = Math.max(1, Math.ceil(bytes.length / 255));
  const strings = Array.from({ length: count }, (_, index) => bytes.subarray(index * 255, (index + 1) * 255));
  return Buffer.concat(strings.flatMap((one) => [Buffer.of(one.length), one]));
}

/** What an answer says. Throws RangeError where the bytes are no DNS message, or one with something after its end. */
export function parseAnswer(message: Buffer): DnsAnswer {
  const flags = message.readUInt16BE(2);
  let at = headerSize;
  for (let questions = message.readUInt16BE(4); questions > 0; questions -= 1) {
    at = readName(message, at).next + 4;
  }
  let lastRecordAt = message.length;
  const section = (count: number) =>
    Array.from({ length: count }, () => {
      lastRecordAt = at;
      const { record, next } = readRecord(message, at);
      at = next;
      return record;
    });
  const answers = section(message.readUInt16BE(6));
  const authorities = section(message.readUInt16BE(8));
  const additionals = section(message.readUInt16BE(10));
  if (at !== message.length) throw new RangeError('the message has trailing bytes');
  return {
    id: message.readUInt16BE(0),
    isAnswer: (flags & 0x8000) !== 0,
    opcode: (flags >> 11) & 15,
    rcode: flags & 15,
    ...{ answers, authorities, additionals, lastRecordAt },
  };
}

function readRecord(message: Buffer, offset: number) {
  const { name, next: at } = readName(message, offset);
  const end = at + 10 + message.readUInt16BE(at + 8);
  if (end > message.length) throw new RangeError('a record extends beyond the message');
  const record: ResourceRecord = {
    name,
    type: message.readUInt16BE(at),
    class: message.readUInt16BE(at + 2),
    ttl: message.readUInt32BE(at + 4),
    data: message.subarray(at + 10, end),
  };
  return { record, next: end };
}
