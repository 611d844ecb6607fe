/** Answers as a name server signs them (RFC 8945 §5.3), written apart from the product, which only checks them. */
import { createHmac } from 'node:crypto';

export type AnswerKey = { readonly name: string; readonly algorithm: string; readonly secret: Buffer };

export type AnswerSignature = {
  /** Seconds since 1970. */
  readonly time: number;
  readonly error?: number;
  readonly other?: Buffer;
  /** Bytes in place of the right ones. */
  readonly mac?: Buffer;
  readonly fudge?: number;
  readonly originalId?: number;
};

/** The header and question of a request turned into an answer with this code, without records. */
export function plainAnswer(request: Buffer, rcode: number): Buffer {
  let end = 12;
  for (let length = request[end] ?? 0; length !== 0; length = request[end] ?? 0) end += length + 1;
  const answer = Buffer.from(request.subarray(0, end + 5));
  answer.writeUInt16BE(0x8000 | (request.readUInt16BE(2) & 0x7800) | rcode, 2);
  answer.fill(0, 6, 12);
  return answer;
}

/** The MAC of a signed request: its TSIG record is the last of it and ends with MAC, id, error and other length. */
export function macOf(request: Buffer, size: number): Buffer {
  return request.subarray(-6 - size, -6);
}

/** The answer with a signature that covers it and the request's. */
export function signedAnswer(
  answer: Buffer,
  requestMac: Buffer,
  key: AnswerKey,
  how: AnswerSignature,
): Buffer {
  const { time, error = 0, other = Buffer.alloc(0), fudge = 300 } = how;
  const clock = Buffer.alloc(8);
  clock.writeUIntBE(time, 0, 6);
  clock.writeUInt16BE(fudge, 6);
  const ending = Buffer.concat([uint16(error), uint16(other.length), other]);
  const algorithm = wire(key.algorithm);
  const signed = [uint16(requestMac.length), requestMac, answer];
  const variables = [wire(key.name), Buffer.from('00ff00000000', 'hex'), algorithm, clock, ending];
  const hash = key.algorithm.split('.')[0]?.replace('hmac-', '') ?? '';
  const right = createHmac(hash, key.secret)
    .update(Buffer.concat([...signed, ...variables]))
    .digest();
  const mac = how.mac ?? right;
  const id = how.originalId === undefined ? answer.subarray(0, 2) : uint16(how.originalId);
  const data = Buffer.concat([algorithm, clock, uint16(mac.length), mac, id, ending]);
  const record = [wire(key.name), Buffer.from('00fa00ff00000000', 'hex'), uint16(data.length), data];
  const whole = Buffer.concat([answer, ...record]);
  whole.writeUInt16BE(whole.readUInt16BE(10) + 1, 10);
  return whole;
}

function wire(name: string): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'));
  return Buffer.concat([...labels, Buffer.of(0)]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
