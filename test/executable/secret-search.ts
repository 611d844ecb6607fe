/**
 * Searches output for secrets in every encoding: as text and bytes, in hex, in base64 at any offset, in URLs and in
 * JSON; private keys also by their numbers and by each line of their PEM.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

type Form = { readonly of: string; readonly form: string; readonly bytes: Buffer };

/** An output, with the secrets that it may contain. */
type Said = { readonly place: string; readonly content: Buffer; readonly mayShow: readonly string[] };

/** Shorter secrets could be found by chance. */
const shortest = 8;

export class SecretSearch {
  readonly #forms: Form[] = [];
  readonly #said: Said[] = [];

  /** The names of the secrets, in order. */
  names(): string[] {
    return [...new Set(this.#forms.map((form) => form.of))];
  }

  /** Adds a secret, which is also searched in earlier outputs. */
  add(name: string, secret: string | Buffer): void {
    const bytes = Buffer.from(secret);
    assert(bytes.length >= shortest, `${name} is too short for the search`);
    const text = bytes.toString('utf8');
    const forms: [string, Buffer | string][] = [
      ['itself', bytes],
      ['hex', bytes.toString('hex')],
      ['HEX', bytes.toString('hex').toUpperCase()],
      ['an URL', encodeURIComponent(text)],
      ['JSON', JSON.stringify(text).slice(1, -1)],
      ...base64Forms(bytes),
    ];
    const isText = Buffer.from(text).equals(bytes);
    for (const [form, value] of forms) {
      if (!isText && ['an URL', 'JSON'].includes(form)) continue;
      this.#forms.push({ of: name, form, bytes: Buffer.from(value) });
    }
  }

  /** Adds a token in base64url, encoded and decoded. */
  addToken(name: string, token: string): void {
    this.add(name, token);
    this.add(name, Buffer.from(token, 'base64url'));
  }

  /** Adds a private key, as PEM or PKCS#8. */
  addPrivateKey(name: string, secret: string | Buffer): void {
    const key =
      typeof secret === 'string'
        ? createPrivateKey(secret)
        : createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' });
    const jwk = key.export({ format: 'jwk' });
    for (const part of ['d', 'p', 'q', 'dp', 'dq', 'qi'] as const) {
      const value = jwk[part];
      if (typeof value === 'string') this.add(name, Buffer.from(value, 'base64url'));
    }
    this.add(name, key.export({ format: 'der', type: 'pkcs8' }));
    // The first line has the algorithm, and lines of the public key are also in the certificate, so both are skipped.
    const pem = key.export({ format: 'pem', type: 'pkcs8' }).toString();
    const lines = pem.split('\n').filter((line) => line.length >= 20 && !line.startsWith('-'));
    const open = createPublicKey(key).export({ format: 'der', type: 'spki' });
    const own = (lines.length > 1 ? lines.slice(1) : lines).filter(
      (line) => !open.includes(Buffer.from(line, 'base64')),
    );
    assert(own.length > 0, name);
    for (const line of own)
      this.#forms.push({ of: name, form: 'a line of its PEM', bytes: Buffer.from(line) });
  }

  /** Adds an output. `mayShow` lists the secrets that it may contain. */
  said(place: string, content: string | Buffer, mayShow: readonly string[] = []): void {
    this.#said.push({ place, content: Buffer.from(content), mayShow });
  }

  /** Adds all files below a folder, except those with the given names. */
  folder(place: string, dir: string, except: readonly string[] = []): string[] {
    const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
      (name) => !except.includes(name) && statSync(join(dir, name)).isFile(),
    );
    for (const name of names) this.said(`${place}: ${name}`, readFileSync(join(dir, name)));
    return names;
  }

  /** The number of outputs. */
  count(): number {
    return this.#said.length;
  }

  /** The leaks: secret, encoding and output, each once. */
  complaints(): string[] {
    const found = this.#said.flatMap(({ place, content, mayShow }) =>
      this.#forms
        .filter(({ of, bytes }) => !mayShow.includes(of) && content.includes(bytes))
        .map(({ of, form }) => `${of}, as ${form}, in ${place}`),
    );
    return [...new Set(found)];
  }
}

/** Its base64 inside of longer data: at each offset, without the characters that depend on adjacent bytes. */
function base64Forms(bytes: Buffer): [string, string][] {
  return [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
    const whole = Math.floor((padded.length * 8) / 6);
    const begin = Math.ceil((offset * 8) / 6);
    return (['base64', 'base64url'] as const).map((encoding): [string, string] => [
      encoding,
      padded.toString(encoding).slice(begin, whole),
    ]);
  });
}
