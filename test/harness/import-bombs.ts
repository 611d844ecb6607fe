/** Files that make OpenSSL work for a very long time, which imports must survive. */
import { createCipheriv, pbkdf2Sync } from 'node:crypto';
import { ber, berInteger } from './ber.ts';

const oid = (hex: string) => ber(0x06, Buffer.from(hex, 'hex'));
const salt = Buffer.from('saltsalt');
const iv = Buffer.alloc(16, 7);

/** PBES2 with PBKDF2 and AES-256 (RFC 8018 §A.4). */
function algorithm(rounds: number): Buffer {
  const kdf = ber(0x30, [oid('2a864886f70d01050c'), ber(0x30, [ber(0x04, salt), berInteger(rounds)])]);
  const cipher = ber(0x30, [oid('60864801650304012a'), ber(0x04, iv)]);
  return ber(0x30, [oid('2a864886f70d01050d'), ber(0x30, [kdf, cipher])]);
}

/** A PKCS#12 file whose key needs this many rounds, inside a part that is encrypted with one round (RFC 7292 §4). */
export function pkcs12Bomb(password: string, rounds: number): Buffer {
  const shrouded = ber(0x30, [algorithm(rounds), ber(0x04, Buffer.alloc(32, 9))]);
  const bags = ber(0x30, ber(0x30, [oid('2a864886f70d010c0a0102'), ber(0xa0, shrouded)]));
  const cipher = createCipheriv('aes-256-cbc', pbkdf2Sync(password, salt, 1, 32, 'sha1'), iv);
  const hidden = Buffer.concat([cipher.update(bags), cipher.final()]);
  const data = oid('2a864886f70d010701');
  const content = ber(0x30, [data, algorithm(1), ber(0x80, hidden)]);
  const safe = ber(0x30, [oid('2a864886f70d010706'), ber(0xa0, ber(0x30, [berInteger(0), content]))]);
  const safes = ber(0x04, ber(0x30, safe));
  return ber(0x30, [berInteger(3), ber(0x30, [data, ber(0xa0, safes)])]);
}

/** A DSA key in PKCS#8 without its public key, whose computation needs numbers of this many bytes. */
export function dsaBomb(size: number): Buffer {
  const number = (fill: number) => ber(0x02, Buffer.alloc(size, fill));
  const numbers = [number(0x7f), number(0x6d), number(0x5b)];
  const kind = ber(0x30, [oid('2a8648ce380401'), ber(0x30, numbers)]);
  return ber(0x30, [berInteger(0), kind, ber(0x04, number(0x69))]);
}
