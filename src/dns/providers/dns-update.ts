/** What a dynamic update (RFC 2136) asks, and what a refusal of it means for whoever set the provider up. */
import { second } from '../../base/duration.ts';
import type { TxtRecord } from '../dns-provider.ts';
import {
  type DnsAnswer,
  encodeTxt,
  type ResourceRecord,
  recordClass,
  recordType,
} from '../resolver/dns-message.ts';
import { isWithin } from '../resolver/dns-name.ts';
import { tsigError, type Verdict } from './tsig.ts';

type Txt = Pick<TxtRecord, 'name' | 'value'>;

/** Adds one TXT record to those of its name; nothing where it is there already (RFC 2136 §2.5.1). `ttl` in seconds. */
export function additionOf({ name, value }: Txt, ttl: number): ResourceRecord {
  return { name, type: recordType.txt, class: recordClass.in, ttl, data: encodeTxt(value) };
}

/** Takes away the TXT record with this value, and no other; nothing where there is none (RFC 2136 §2.5.4). */
export function removalOf({ name, value }: Txt): ResourceRecord {
  return { name, type: recordType.txt, class: recordClass.none, ttl: 0, data: encodeTxt(value) };
}

/**
 * The zone that an answer to a question for the SOA of `name` tells: that of the record itself, or of the one in the
 * authority section that goes with "there is no such record" (RFC 2308 §2). Undefined where the answer tells of none, or
 * of the root alone, which means that the server does not know the name.
 */
export function zoneIn({ answers, authorities }: DnsAnswer, name: string): string | undefined {
  const all = [...answers, ...authorities];
  const soa = all.find((record) => record.type === recordType.soa && isWithin(name, record.name));
  return soa?.name || undefined;
}

/** Header codes (RFC 1035 §4.1.1, RFC 2136 §2.2): the name, and what to do about it. */
const refusals: Readonly<Record<number, readonly [string, string]>> = {
  1: ['FORMERR', 'it does not support dynamic updates, or a middlebox changed the message'],
  2: ['SERVFAIL', 'a server failure, for example because it cannot write the zone; see its log'],
  3: ['NXDOMAIN', 'unknown zone; check the setting zone'],
  4: ['NOTIMP', 'dynamic updates are not supported; use another provider type for this zone'],
  5: [
    'REFUSED',
    'the key is not permitted to change TXT records at this name; allow it in the update policy of the zone, and check that this is the primary server',
  ],
  9: [
    'NOTAUTH',
    'not the primary server of this zone, or the key is not accepted; check server, zone and key_name',
  ],
  10: ['NOTZONE', 'the name is not in the zone; check the setting zone'],
};

/** Why an answer with this header code was no success, as the second half of a sentence about the server. */
export function refusal(rcode: number): string {
  const [name, advice] = refusals[rcode] ?? [`code ${rcode}`, 'see its log'];
  return `answered ${name}: ${advice}`;
}

/** What is wrong with the signatures, as the second half of a sentence about the server. `now`: UTC milliseconds. */
export function signatureRefusal(verdict: Verdict, now: number): string {
  switch (verdict.kind) {
    case 'good':
      return 'answered with a valid signature';
    case 'missing':
      return 'answered without a signature, so the answer cannot be trusted; configure the TSIG key on the server';
    case 'forged':
      return 'answered with a signature by another key; check secret and algorithm, and for a middlebox';
    case 'stale':
      return `answered with a signature from another time: ${clocks(verdict.serverTime, now)}`;
    case 'refused':
      return `answered ${reasonOf(verdict.error, verdict.serverTime, now)}`;
  }
}

function reasonOf(error: number, serverTime: number | undefined, now: number): string {
  switch (error) {
    case tsigError.badKey:
      return 'BADKEY: unknown TSIG key name or algorithm; check key_name and algorithm';
    case tsigError.badSig:
      return 'BADSIG: wrong TSIG secret; check secret and algorithm';
    case tsigError.badTime:
      return `BADTIME: ${serverTime === undefined ? 'the clocks differ' : clocks(serverTime, now)}`;
    case tsigError.badTrunc:
      return 'BADTRUNC: it requires longer signatures';
    default:
      return `TSIG error ${error}; see its log`;
  }
}

function clocks(serverTime: number, now: number): string {
  // A signature has whole seconds.
  const apart = Math.floor(serverTime / second) - Math.floor(now / second);
  const direction = apart < 0 ? 'behind' : 'ahead of';
  return `the clock of the server is ${Math.abs(apart)} s ${direction} the vault's; synchronize both with NTP`;
}

/** Whether an answer goes with a request of this id and kind (RFC 1035 §4.1.1). */
export function isAnswerTo(answer: DnsAnswer, id: number, kind: number): boolean {
  return answer.isAnswer && answer.id === id && answer.opcode === kind;
}
