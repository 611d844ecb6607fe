/**
 * Authentication of rows: tags computed with a key that is not in the database, so that write access to the database
 * does not suffice to forge them. Implemented by crypto/integrity-key.ts.
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
  /** The 32-byte tag of a text. */
  readonly tag: (purpose: TagPurpose, text: string) => Buffer;
  /** Whether the tag is that of the text, in constant time; false for a missing tag. */
  readonly fits: (purpose: TagPurpose, text: string, tag: Buffer | null | undefined) => boolean;
};
