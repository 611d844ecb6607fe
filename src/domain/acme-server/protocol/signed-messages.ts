/**
 * Messages signed as JSON Web Signatures (RFC 7515) in the form that ACME takes: flattened JSON with protected headers
 * only (RFC 8555 §6.2). They are requests, and what requests contain: bindings to an ACME client and key changes.
 */
import { z } from 'zod';
import { AcmeProblem } from './acme-problem.ts';

/** A message whose signature has not been verified. */
export type SignedMessage = {
  readonly header: MessageHeader;
  readonly payload: Buffer;
  readonly jws: { readonly protected: string; readonly payload: string; readonly signature: string };
};

export type MessageHeader = {
  readonly alg: string;
  readonly url: string;
  readonly nonce: string | undefined;
  readonly kid: string | undefined;
  /** A public key that was not checked yet. */
  readonly jwk: unknown;
};

const text = z.string();
const envelope = z.object({ protected: text, payload: text, signature: text });
const protectedHeader = z.object({
  alg: text,
  url: text,
  nonce: text.optional(),
  kid: text.optional(),
  jwk: z.unknown().optional(),
});

/**
 * Members that would make another kind of message of it: the general form, headers without a signature (RFC 7515 §7.2).
 */
const unwanted = ['signatures', 'header'];
/** Extensions that change how a message is read (RFC 7797, RFC 7515 §4.1.11), and keys that are elsewhere. */
const unwantedHeaders = ['crit', 'b64', 'jku', 'x5u', 'x5c'];

/** Reads a message from JSON. `what` begins the sentences of errors. Throws `malformed`. */
export function readMessage(json: unknown, what = 'The request'): SignedMessage {
  const { data } = envelope.safeParse(json);
  const extra = unwanted.find((name) => Object.hasOwn(Object(json), name));
  if (data === undefined || extra !== undefined) {
    throw new AcmeProblem(
      'malformed',
      extra === undefined
        ? `${what} must be a JWS in flattened JSON: an object with protected, payload and signature.`
        : `${what} must be a JWS in flattened JSON without "${extra}".`,
    );
  }
  const payload = fromBase64Url(data.payload);
  const head = fromBase64Url(data.protected);
  if (payload === undefined || head === undefined || fromBase64Url(data.signature) === undefined) {
    throw new AcmeProblem('malformed', `${what} has a part that is not base64url without padding.`);
  }
  return { header: headerIn(head, what), payload, jws: data };
}

function headerIn(bytes: Buffer, what: string): MessageHeader {
  const json = parseObject(bytes);
  const extra = unwantedHeaders.find((name) => json !== undefined && Object.hasOwn(json, name));
  if (extra !== undefined) {
    throw new AcmeProblem('malformed', `${what} has the header "${extra}", which is not supported.`);
  }
  const { data } = protectedHeader.safeParse(json);
  if (data === undefined) {
    throw new AcmeProblem('malformed', `${what} needs the protected headers alg and url, as strings.`);
  }
  const { alg, url, nonce, kid, jwk } = data;
  if ((kid === undefined) === (jwk === undefined)) {
    throw new AcmeProblem('malformed', `${what} needs exactly one of the headers jwk and kid.`);
  }
  return { alg, url, nonce, kid, jwk };
}

/** The object in JSON text; undefined for anything else. */
export function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    // Neither JSON nor UTF-8.
    return undefined;
  }
}

/** The bytes of base64url without padding; undefined for other text, also if it has bits after the last byte. */
export function fromBase64Url(encoded: string): Buffer | undefined {
  const bytes = Buffer.from(encoded, 'base64url');
  return bytes.toString('base64url') === encoded ? bytes : undefined;
}

let loading: Promise<typeof import('jose')> | undefined;

/** jose, which is loaded for the first message, so that commands do not wait for it. */
function joseLibrary(): Promise<typeof import('jose')> {
  loading ??= import('jose');
  return loading;
}

/** Whether the MAC of the message was made with these bytes and the algorithm in its header. */
export async function isSignedBy({ jws, header }: SignedMessage, key: Uint8Array): Promise<boolean> {
  const { errors, flattenedVerify } = await joseLibrary();
  try {
    await flattenedVerify(jws, key, { algorithms: [header.alg] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}
