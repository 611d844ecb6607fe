/** Key types that the vault generates. Imported certificates may have others, which are only displayed. */

export const keyTypes = ['ec256', 'ec384', 'rsa2048', 'rsa3072', 'rsa4096', 'ed25519'] as const;

export type KeyType = (typeof keyTypes)[number];

export const defaultKeyType: KeyType = 'ec256';

export function isKeyType(text: string): text is KeyType {
  return (keyTypes as readonly string[]).includes(text);
}
