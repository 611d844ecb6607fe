/**
 * Password hashes: Argon2id (RFC 9106) in a PHC string, which contains its parameters and salt, so that older hashes
 * stay valid after the parameters are raised.
 */
import { argon2 } from 'node:crypto';
import { promisify } from 'node:util';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { sameBytes } from './constant-time.ts';

const derive = promisify(argon2);

/** The cost parameters of a hash. */
export type HashCost = {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
};

/** The second recommended option of RFC 9106 §4: about a quarter of a second and 64 MiB. */
export const hashCost: HashCost = { memory: 65_536, passes: 3, parallelism: 4 };

const saltSize = 16;
const tagSize = 32;

/** A manipulated row must not exhaust the memory of the host or take a minute. */
const highest: HashCost = { memory: 1_048_576, passes: 16, parallelism: 16 };

const pattern =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;

type ReadHash = HashCost & { readonly salt: Buffer; readonly tag: Buffer };

/** The PHC string of a new hash. */
export async function hashPassword(
  world: World,
  password: Secret<string>,
  cost: HashCost = hashCost,
): Promise<string> {
  const salt = world.randomBytes(saltSize);
  return phcText(cost, salt, await tagOf(password, salt, cost));
}

/** The PHC string of a hash without a password, to spend the same time on unknown accounts. */
export function dummyPasswordHash(world: World, cost: HashCost = hashCost): string {
  return phcText(cost, world.randomBytes(saltSize), world.randomBytes(tagSize));
}

/** Whether the password has this hash. Throws if the text is not one of our hashes: the row is damaged. */
export async function passwordMatches(password: Secret<string>, phc: string): Promise<boolean> {
  const { salt, tag, ...cost } = readHash(phc);
  return sameBytes(await tagOf(password, salt, cost), tag);
}

/** Whether the hash is cheaper than a new one would be. */
export function needsRehash(phc: string, cost: HashCost = hashCost): boolean {
  const { memory, passes } = readHash(phc);
  return memory < cost.memory || passes < cost.passes;
}

function readHash(phc: string): ReadHash {
  const [, memory, passes, parallelism, salt = '', tag = ''] = pattern.exec(phc) ?? [];
  const read = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
  const isSane =
    read.parallelism >= 1 &&
    read.parallelism <= highest.parallelism &&
    read.passes >= 1 &&
    read.passes <= highest.passes &&
    read.memory >= 8 * read.parallelism &&
    read.memory <= highest.memory;
  if (!isSane) throw new Error('a password hash in the database is damaged');
  return read;
}

/** Unicode can encode a character in several ways, and keyboards differ: normalize to NFC (RFC 8265 §4.2). */
async function tagOf(password: Secret<string>, salt: Buffer, cost: HashCost): Promise<Buffer> {
  return derive('argon2id', {
    message: password.expose().normalize('NFC'),
    nonce: salt,
    parallelism: cost.parallelism,
    tagLength: tagSize,
    memory: cost.memory,
    passes: cost.passes,
  });
}

function phcText({ memory, passes, parallelism }: HashCost, salt: Buffer, tag: Buffer): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
