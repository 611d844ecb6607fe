/**
 * Looks for secrets wherever they should not be: each in all the forms in which it could be known, as text and bytes, in
 * hex, in base64 at any offset, in URLs and in JSON; private keys also by their numbers and by each line of their PEM.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

type Form = { readonly of: string; readonly form: string; readonly bytes: Buffer };

/** Something that was said, and whose job it was to hand some secrets out. */
type Said = { readonly place: string; readonly content: Buffer; readonly mayShow: readonly string[] };

/** Whatever is shorter could be found by chance. */
const shortest = 8;

export class SecretSearch {
  readonly #forms: Form[] = [];
  readonly #said: Said[] = [];

  /** The names of the secrets, in the order in which they came. */
  names(): string[] {
    return [...new Set(this.#forms.map((form) => form.of))];
  }

  /** A secret to look for from now on, also in what was said before. */
  add(name: string, secret: string | Buffer): void {
    const bytes = Buffer.from(secret);
    assert(bytes.length >= shortest, `${name} is too short to be looked for`);
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

  /** A token in base64url: itself and what it stands for. */
  addToken(name: string, token: string): void {
    this.add(name, token);
    this.add(name, Buffer.from(token, 'base64url'));
  }

  /** The key in a PEM or as PKCS#8. */
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
    // The first of several lines names the algorithm; lines of the public key stand in the certificate as well.
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

  /** Something that somebody can read. `mayShow` names what it is there to hand out. */
  said(place: string, content: string | Buffer, mayShow: readonly string[] = []): void {
    this.#said.push({ place, content: Buffer.from(content), mayShow });
  }

  /** All files below a folder, as they are now, except those called so. */
  folder(place: string, dir: string, except: readonly string[] = []): string[] {
    const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
      (name) => !except.includes(name) && statSync(join(dir, name)).isFile(),
    );
    for (const name of names) this.said(`${place}: ${name}`, readFileSync(join(dir, name)));
    return names;
  }

  /** How many things were said. */
  count(): number {
    return this.#said.length;
  }

  /** Which secret was said where, in which form; each once. */
  complaints(): string[] {
    const found = this.#said.flatMap(({ place, content, mayShow }) =>
      this.#forms
        .filter(({ of, bytes }) => !mayShow.includes(of) && content.includes(bytes))
        .map(({ of, form }) => `${of}, as ${form}, in ${place}`),
    );
    return [...new Set(found)];
  }
}

/** As it stands in the base64 of anything that contains it: at each offset, without what its neighbours decide. */
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
