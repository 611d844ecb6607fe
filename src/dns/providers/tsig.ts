/** Transaction signatures (RFC 8945): authenticate our requests to the name server, and its responses to us. */
import { createHmac } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import {
  type DnsAnswer,
  encodeRecord,
  type ResourceRecord,
  recordClass,
  recordType,
} from '../resolver/dns-message.ts';
import { encodeName, plainName, readName } from '../resolver/dns-name.ts';

/** hmac-sha256 first: every server must support it. */
export const tsigAlgorithms = [
  'hmac-sha256',
  'hmac-sha512',
  'hmac-sha384',
  'hmac-sha224',
  'hmac-sha1',
  'hmac-md5',
] as const;

export type TsigAlgorithm = (typeof tsigAlgorithms)[number];

export type TsigKey = { readonly name: string; readonly algorithm: TsigAlgorithm; readonly secret: Secret };

/** TSIG errors (RFC 8945 §3), which are in the signature, not in the header. */
export const tsigError = { badSig: 16, badKey: 17, badTime: 18, badTrunc: 22 } as const;

/** Allowed difference between two clocks, in seconds (RFC 8945 §10). */
const fudge = 300;

/** A signed request, and its MAC, which the signature of the response covers too. */
export type Signed = { readonly message: Buffer; readonly mac: Buffer };

/**
 * Result of verifying the signature of a response. `refused`: the server rejected our signature; `serverTime` (UTC
 * milliseconds) is the time of its clock, if reported. `stale`: signed by the server, but too old or in the future.
 */
export type Verdict =
  | { readonly kind: 'good' | 'missing' | 'forged' }
  | { readonly kind: 'stale'; readonly serverTime: number }
  | { readonly kind: 'refused'; readonly error: number; readonly serverTime?: number };

/** Signs an unsigned request. `now`: UTC milliseconds. */
export function sign(request: Buffer, key: TsigKey, now: number): Signed {
  const time = Math.floor(now / 1000);
  const mac = hmac(key, [request, variables(key, { time, fudge, error: 0, other: Buffer.alloc(0) })]);
  const data = Buffer.concat([
    ...[encodeName(wireName(key.algorithm)), uint48(time), uint16(fudge), uint16(mac.length), mac],
    // The id of the request, the error and the length of other data.
    ...[request.subarray(0, 2), uint16(0), uint16(0)],
  ]);
  const record = encodeRecord({
    name: key.name,
    type: recordType.tsig,
    class: recordClass.any,
    ttl: 0,
    data,
  });
  const message = Buffer.concat([request, record]);
  message.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return { message, mac };
}

/**
 * Verifies the signature of a response to a request with `requestMac`. `now`: UTC milliseconds. A `refused` for a wrong
 * key or signature is unsigned (RFC 8945 §5.3.2), so it may be forged.
 */
export function verify(
  message: Buffer,
  answer: DnsAnswer,
  key: TsigKey,
  requestMac: Buffer,
  now: number,
): Verdict {
  const record = answer.additionals.at(-1);
  if (record?.type !== recordType.tsig) return { kind: 'missing' };
  const signature = readSignature(record);
  if (signature === undefined) return { kind: 'forged' };
  const { error, mac, time, originalId } = signature;
  if (error === tsigError.badKey || error === tsigError.badSig) return { kind: 'refused', error };
  const isOurs = record.name === plainName(key.name) && signature.algorithm === wireName(key.algorithm);
  const signedPart = Buffer.from(message.subarray(0, answer.lastRecordAt));
  signedPart.writeUInt16BE(originalId, 0);
  signedPart.writeUInt16BE(answer.additionals.length - 1, 10);
  const expected = hmac(key, [uint16(requestMac.length), requestMac, signedPart, variables(key, signature)]);
  if (!isOurs || !sameBytes(mac, expected)) return { kind: 'forged' };
  if (error === tsigError.badTime) {
    const reportedTime = signature.other.length === 6 ? signature.other.readUIntBE(0, 6) : time;
    return { kind: 'refused', error, serverTime: reportedTime * 1000 };
  }
  if (error !== 0) return { kind: 'refused', error };
  const skew = Math.abs(Math.floor(now / 1000) - time);
  return skew > signature.fudge ? { kind: 'stale', serverTime: time * 1000 } : { kind: 'good' };
}

type Signature = {
  readonly algorithm: string;
  /** Seconds since 1970. */
  readonly time: number;
  readonly fudge: number;
  readonly mac: Buffer;
  readonly originalId: number;
  readonly error: number;
  readonly other: Buffer;
};

/** The fields of RFC 8945 §4.2, or undefined if the data has another form. */
function readSignature({ data }: ResourceRecord): Signature | undefined {
  try {
    const { name: algorithm, next: at } = readName(data, 0);
    const macEnd = at + 10 + data.readUInt16BE(at + 8);
    const other = data.subarray(macEnd + 6);
    if (data.readUInt16BE(macEnd + 4) !== other.length) return undefined;
    return {
      ...{ algorithm, other, mac: data.subarray(at + 10, macEnd) },
      time: data.readUIntBE(at, 6),
      fudge: data.readUInt16BE(at + 6),
      originalId: data.readUInt16BE(macEnd),
      error: data.readUInt16BE(macEnd + 2),
    };
  } catch {
    // Shorter than its length field says: not a valid signature.
    return undefined;
  }
}

/** The signed data besides the message (RFC 8945 §4.3.3). */
function variables(
  key: TsigKey,
  { time, fudge, error, other }: Pick<Signature, 'time' | 'fudge' | 'error' | 'other'>,
): Buffer {
  return Buffer.concat([
    ...[encodeName(key.name), uint16(recordClass.any), Buffer.alloc(4)],
    ...[encodeName(wireName(key.algorithm)), uint48(time), uint16(fudge)],
    ...[uint16(error), uint16(other.length), other],
  ]);
}

/** RFC 8945 §6. */
function wireName(algorithm: TsigAlgorithm): string {
  return algorithm === 'hmac-md5' ? 'hmac-md5.sig-alg.reg.int' : algorithm;
}

function hmac(key: TsigKey, parts: readonly Buffer[]): Buffer {
  return createHmac(key.algorithm.slice('hmac-'.length), key.secret.expose())
    .update(Buffer.concat(parts))
    .digest();
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function uint48(value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(value, 0, 6);
  return bytes;
}
