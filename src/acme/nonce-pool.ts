/** Nonces that a CA has handed out and that no request has used yet (RFC 8555 §6.5). */

const most = 32;
const pattern = /^[A-Za-z0-9_-]{1,512}$/;

/** Whether a Replay-Nonce is one: base64url (§6.5.1). */
export function isNonce(text: string): boolean {
  return pattern.test(text);
}

export class NoncePool {
  readonly #nonces: string[] = [];

  /** Keeps a Replay-Nonce. What is none is ignored, and the oldest gives way to the 33rd. */
  add(nonce: string | undefined): void {
    if (nonce === undefined || !isNonce(nonce)) return;
    this.#nonces.push(nonce);
    if (this.#nonces.length > most) this.#nonces.shift();
  }

  /** The newest, which is the least likely to have been forgotten by the CA; each is handed out once. */
  take(): string | undefined {
    return this.#nonces.pop();
  }
}
