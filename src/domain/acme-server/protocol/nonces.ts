/**
 * Nonces of requests (RFC 8555 §6.5). They are not stored when they are issued: a code in each proves to every process
 * of the vault that one of them issued it, and when. Each process refuses those that it saw before; a request that
 * changes something also stores its nonce with the change, so that no other process accepts it again.
 */
import { minute, second } from '../../../base/duration.ts';
import { requireIntegrity } from '../../../base/integrity.ts';
import { sameBytes } from '../../../crypto/secrets/constant-time.ts';
import type { Writer } from '../../../db/database.ts';
import { insertNonce } from '../../../db/tables/acme-server/acme-nonces.ts';
import type { TimedContext } from '../../contexts.ts';
import { AcmeProblem } from './acme-problem.ts';
import { fromBase64Url } from './signed-messages.ts';

/** A nonce that came with a request, and was accepted. */
export type UsedNonce = { readonly nonce: Buffer; readonly expiresAt: number };

/** How long a nonce is accepted. */
export const nonceLifetime = 15 * minute;
/** The clocks of nodes differ a little. */
const leeway = 10 * second;

const timeSize = 4;
const randomSize = 12;
const contentSize = timeSize + randomSize;
const codeSize = 16;

/** Used nonces that a process remembers at most, in each of two generations; one takes about 100 bytes. */
const maxCached = 200_000;

export class Nonces {
  readonly #vault: TimedContext;
  /** The contents of those used since `#turnedAt`, and of those used in the generation before. */
  #used = new Set<string>();
  #usedBefore = new Set<string>();
  #turnedAt: number;
  readonly #most: number;

  constructor(vault: TimedContext, most: number = maxCached) {
    this.#vault = vault;
    this.#most = most;
    this.#turnedAt = vault.world.now();
  }

  /** A new nonce, in base64url. */
  fresh(): string {
    const { world } = this.#vault;
    const content = Buffer.alloc(contentSize);
    content.writeUInt32BE(Math.floor(world.now() / second));
    world.randomBytes(randomSize).copy(content, timeSize);
    return Buffer.concat([content, this.#codeOf(content)]).toString('base64url');
  }

  /**
   * Accepts a nonce once. Throws `malformed` for text that is not base64url, and `badNonce` for one that is missing,
   * was not issued by this vault, has expired, or was used before.
   */
  use(text: string | undefined): UsedNonce {
    if (text === undefined) throw badNonce('The request has no nonce.');
    const bytes = fromBase64Url(text);
    if (bytes === undefined)
      throw new AcmeProblem('malformed', 'The nonce is not base64url without padding.');
    const nonce = bytes.subarray(0, contentSize);
    if (
      bytes.length !== contentSize + codeSize ||
      !sameBytes(bytes.subarray(contentSize), this.#codeOf(nonce))
    ) {
      throw badNonce('The nonce is not one of this server.');
    }
    const now = this.#vault.world.now();
    const issuedAt = nonce.readUInt32BE() * second;
    const expiresAt = issuedAt + nonceLifetime;
    if (now >= expiresAt || issuedAt > now + leeway) throw badNonce('The nonce has expired.');
    this.#remember(nonce.toString('latin1'), now);
    return { nonce, expiresAt };
  }

  #remember(content: string, now: number): void {
    const isOver = now >= this.#turnedAt + nonceLifetime || this.#used.size >= this.#most;
    if (isOver) {
      this.#usedBefore = this.#used;
      this.#used = new Set();
      this.#turnedAt = now;
    }
    if (this.#used.has(content) || this.#usedBefore.has(content)) throw usedBefore();
    this.#used.add(content);
  }

  #codeOf(content: Buffer): Buffer {
    const code = requireIntegrity(this.#vault.db).tag('acme nonce', content.toString('base64url'));
    return code.subarray(0, codeSize);
  }
}

/**
 * Stores the nonce of a request in the transaction of what it changes. Throws `badNonce` if another process did so
 * before.
 */
export async function storeNonce(writer: Writer, { nonce, expiresAt }: UsedNonce): Promise<void> {
  if (!(await insertNonce(writer, nonce, expiresAt))) throw usedBefore();
}

function usedBefore(): AcmeProblem {
  return badNonce('The nonce was used before.');
}

function badNonce(detail: string): AcmeProblem {
  return new AcmeProblem('badNonce', `${detail} Retry with the nonce of this answer.`);
}
