/**
 * What authenticates rows: tags by a key that is not in the database, so that write access to the database alone cannot forge
 * them. crypto/integrity-key.ts implements it.
 */

/** What a tag is computed for. Never rename a purpose that has shipped. */
export type TagPurpose =
  | 'audit event'
  | 'audit mark'
  | 'api key'
  | 'administrator'
  | 'session'
  | 'setup link';

export type Integrity = {
  /** 32 bytes over a text. */
  readonly tag: (purpose: TagPurpose, text: string) => Buffer;
  /** Whether the tag is that of the text, in constant time; a missing tag never is. */
  readonly fits: (purpose: TagPurpose, text: string, tag: Buffer | null | undefined) => boolean;
};
