/**
 * Signs responses like a name server (RFC 8945 §5.3), with code independent of the product, which only verifies them.
 */
import { createHmac } from 'node:crypto';

export type AnswerKey = { readonly name: string; readonly algorithm: string; readonly secret: Buffer };

export type AnswerSignature = {
  /** Seconds since 1970. */
  readonly time: number;
  readonly error?: number;
  readonly other?: Buffer;
  /** The MAC to send instead of the correct one. */
  readonly mac?: Buffer;
  readonly fudge?: number;
  readonly originalId?: number;
};

/** A response to a request with this code and without records. */
export function plainAnswer(request: Buffer, rcode: number): Buffer {
  let end = 12;
  for (let length = request[end] ?? 0; length !== 0; length = request[end] ?? 0) end += length + 1;
  const answer = Buffer.from(request.subarray(0, end + 5));
  answer.writeUInt16BE(0x8000 | (request.readUInt16BE(2) & 0x7800) | rcode, 2);
  answer.fill(0, 6, 12);
  return answer;
}

/** The MAC of a signed request, from its TSIG record, the last one, which ends with MAC, id, error and other length. */
export function macOf(request: Buffer, size: number): Buffer {
  return request.subarray(-6 - size, -6);
}

/** The response with a signature that also covers the request's MAC. */
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
