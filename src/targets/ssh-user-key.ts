/** Private keys of SSH users, which may be encrypted. */
import type { ParsedKey, utils } from 'ssh2';

/** ssh-keygen uses 16 or 24. Each takes about 15 ms, in which the vault does nothing else. */
const mostRounds = 32;

/**
 * Reads a private key in the format of OpenSSH, PEM or PuTTY. Returns undefined without one, and a message for people
 * if the key is unreadable.
 */
export function readUserKey(
  { parseKey }: Pick<typeof utils, 'parseKey'>,
  {
    privateKey,
    passphrase,
  }: { readonly privateKey: string | undefined; readonly passphrase: string | undefined },
): ParsedKey | string | undefined {
  if (privateKey === undefined) return undefined;
  const rounds = roundsOf(privateKey);
  if (rounds > mostRounds) {
    return `private_key is encrypted with ${rounds} rounds, but at most ${mostRounds} are supported; set them with ssh-keygen -p -a 16`;
  }
  const key: unknown = parseKey(privateKey, passphrase);
  if (key instanceof Error) return `cannot read private_key: ${key.message}`;
  const [first] = [key].flat() as ParsedKey[];
  if (first?.isPrivateKey() !== true) return 'cannot read private_key: it is a public key';
  return first;
}

/** How often the passphrase is hashed (`PROTOCOL.key` of OpenSSH); 0 if the key is not encrypted with bcrypt. */
function roundsOf(privateKey: string): number {
  const base64 = /^\s*-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)/.exec(privateKey)?.[1] ?? '';
  const bytes = Buffer.from(base64, 'base64');
  let at = 'openssh-key-v1\0'.length;
  const next = (): Buffer => {
    const length = at + 4 <= bytes.length ? bytes.readUInt32BE(at) : 0;
    at += 4 + length;
    return bytes.subarray(at - length, at);
  };
  next();
  if (next().toString('latin1') !== 'bcrypt') return 0;
  const options = next();
  return options.length < 4 ? 0 : options.readUInt32BE(options.length - 4);
}
