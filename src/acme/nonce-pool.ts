/** Unused nonces from responses of a CA (RFC 8555 §6.5). */

const most = 32;
const pattern = /^[A-Za-z0-9_-]{1,512}$/;

/** Whether a Replay-Nonce is valid: base64url (§6.5.1). */
export function isNonce(text: string): boolean {
  return pattern.test(text);
}

export class NoncePool {
  readonly #nonces: string[] = [];

  /** Adds a Replay-Nonce. Invalid ones are ignored; the 33rd replaces the oldest. */
  add(nonce: string | undefined): void {
    if (nonce === undefined || !isNonce(nonce)) return;
    this.#nonces.push(nonce);
    if (this.#nonces.length > most) this.#nonces.shift();
  }

  /** The newest nonce, which is the most likely to be still valid; each is returned once. */
  take(): string | undefined {
    return this.#nonces.pop();
  }
}
