/** An authenticator in memory (WebAuthn §6), which can also do what none may: ES256, attestation none. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** What a dishonest or broken client does otherwise. */
export type Deviations = {
  readonly origin?: string;
  readonly rpId?: string;
  readonly isUserVerified?: boolean;
  readonly count?: number;
  readonly challenge?: string;
  readonly type?: string;
  readonly userHandle?: string;
  readonly attestation?: { readonly format: string; readonly statement: Buffer };
};

type CreationOptions = {
  readonly rp: { readonly id: string };
  readonly user: { readonly id: string };
  readonly challenge: string;
};

type RequestOptions = { readonly rpId: string; readonly challenge: string };

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest();

const base64url = (data: string | Buffer) => Buffer.from(data).toString('base64url');

export class SoftwareAuthenticator {
  readonly #origin: string;
  readonly #id = randomBytes(16);
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #userHandle = '';
  count = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  get id(): string {
    return base64url(this.#id);
  }

  create(options: CreationOptions, deviations: Deviations = {}) {
    this.#userHandle = options.user.id;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.#id.length);
    const credential = Buffer.concat([Buffer.alloc(16), length, this.#id, coseKey(this.#keys.publicKey)]);
    const { format = 'none', statement = Buffer.of(0xa0) } = deviations.attestation ?? {};
    const data = this.#authenticatorData(options.rp.id, deviations, credential);
    const attestationObject = Buffer.concat([
      Buffer.of(0xa3),
      ...[text('fmt'), text(format), text('attStmt'), statement],
      ...[text('authData'), Buffer.of(0x59, data.length >> 8, data.length & 0xff), data],
    ]);
    const clientData = this.#clientData('webauthn.create', options.challenge, deviations);
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: base64url(clientData),
        attestationObject: base64url(attestationObject),
        transports: ['internal'],
      },
    };
  }

  get(options: RequestOptions, deviations: Deviations = {}) {
    const data = this.#authenticatorData(options.rpId, deviations);
    const clientData = this.#clientData('webauthn.get', options.challenge, deviations);
    const signature = sign('sha256', Buffer.concat([data, sha256(clientData)]), this.#keys.privateKey);
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(data),
        signature: base64url(signature),
        userHandle: deviations.userHandle ?? this.#userHandle,
      },
    };
  }

  #credential() {
    return { id: this.id, rawId: this.id, type: 'public-key', clientExtensionResults: {} };
  }

  #clientData(type: string, challenge: string, deviations: Deviations): string {
    return JSON.stringify({
      type: deviations.type ?? type,
      challenge: deviations.challenge ?? challenge,
      origin: deviations.origin ?? this.#origin,
      crossOrigin: false,
    });
  }

  #authenticatorData(
    rpId: string,
    { rpId: other, isUserVerified = true, count }: Deviations,
    credential?: Buffer,
  ): Buffer {
    const flags = 0x01 | (isUserVerified ? 0x04 : 0) | (credential === undefined ? 0 : 0x40);
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(count ?? this.count);
    return Buffer.concat([
      sha256(other ?? rpId),
      Buffer.of(flags),
      counter,
      ...(credential === undefined ? [] : [credential]),
    ]);
  }
}

/** A text of up to 23 bytes in CBOR (RFC 8949 §3). */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.of(0x60 + value.length), Buffer.from(value)]);
}

/** An ES256 key as CBOR (RFC 9053 §7.1.1). */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const part = (label: number, value: string) =>
    Buffer.concat([Buffer.of(label, 0x58, 0x20), Buffer.from(value, 'base64url')]);
  return Buffer.concat([Buffer.from('a5010203262001', 'hex'), part(0x21, x), part(0x22, y)]);
}
