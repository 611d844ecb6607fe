/**
 * The key derivation of PKCS#12 (RFC 7292 §B.2), which node:crypto does not have: for the MAC of every file, and for
 * the encryption of legacy ones.
 */
import { hash } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { utf16BigEndian } from '../der.ts';

/** What the derived bytes are for: the diversifier of RFC 7292 §B.3. */
const purposes = { key: 1, iv: 2, mac: 3 } as const;

/** The block size of SHA-1 and SHA-256 in bytes. */
const block = 64;

/** Hashes at a time, about half a millisecond; other requests get their turn in between. */
const slice = 400;

export type Pkcs12Derivation = {
  readonly hash: 'sha1' | 'sha256';
  readonly salt: Buffer;
  readonly iterations: number;
};

/** `size` bytes for the purpose. The password is converted to UTF-16 with a terminator, as §B.1 demands. */
export async function pkcs12Key(
  world: Pick<World, 'turn'>,
  password: Secret<string>,
  purpose: keyof typeof purposes,
  size: number,
  derivation: Pkcs12Derivation,
): Promise<Buffer> {
  const diversifier = Buffer.alloc(block, purposes[purpose]);
  const secret = utf16BigEndian(`${password.expose()}\0`);
  const input = Buffer.concat([inBlocks(derivation.salt), inBlocks(secret)]);
  const pieces: Buffer[] = [];
  for (let done = 0; done < size; ) {
    const piece = await iterated(world, Buffer.concat([diversifier, input]), derivation);
    pieces.push(piece);
    done += piece.length;
    if (done < size) addToBlocks(input, piece);
  }
  return Buffer.concat(pieces).subarray(0, size);
}

async function iterated(
  world: Pick<World, 'turn'>,
  first: Buffer,
  { hash: algorithm, iterations }: Pkcs12Derivation,
): Promise<Buffer> {
  let digest: Buffer = hash(algorithm, first, 'buffer');
  for (let round = 1; round < iterations; round += 1) {
    digest = hash(algorithm, digest, 'buffer');
    if (round % slice === 0) await world.turn();
  }
  return digest;
}

/** Repeats the bytes until they fill whole blocks. */
function inBlocks(bytes: Buffer): Buffer {
  return Buffer.alloc(Math.ceil(bytes.length / block) * block, bytes);
}

/** Adds the repeated digest and one to each block of the input, as numbers modulo 2^512 (§B.2, step 6). */
function addToBlocks(input: Buffer, digest: Buffer): void {
  const added = Buffer.alloc(block, digest);
  for (let start = 0; start < input.length; start += block) {
    let carry = 1;
    for (let index = block - 1; index >= 0; index -= 1) {
      const sum = input.readUInt8(start + index) + added.readUInt8(index) + carry;
      input.writeUInt8(sum & 0xff, start + index);
      carry = sum >> 8;
    }
  }
}
