/**
 * Authentication of rows: tags computed with a key that is not in the database, so that write access to the database
 * does not suffice to forge them. The same key makes entity tags that outlive master keys. Implemented by
 * crypto/secrets/integrity-key.ts.
 */
import type { KeyObject } from 'node:crypto';

/** What a tag is computed for. Never rename a purpose that has shipped. */
export type TagPurpose =
  | 'audit event'
  | 'audit mark'
  | 'api key'
  | 'acme client'
  | 'enrollment'
  | 'certificate labels'
  | 'administrator'
  | 'session'
  | 'pending change'
  | 'recovery code'
  | 'passkey user'
  | 'setup link'
  | 'outbound targets'
  | 'entity tag'
  | 'acme account'
  | 'acme nonce';

export type Integrity = {
  /** The secret behind the tags, to hand it to a thread of this process. */
  readonly secret: KeyObject;
  /** The 32-byte tag of a text. */
  readonly tag: (purpose: TagPurpose, text: string) => Buffer;
  /** Whether the tag is that of the text, in constant time; false for a missing tag. */
  readonly fits: (purpose: TagPurpose, text: string, tag: Buffer | null | undefined) => boolean;
};

/** Creates and checks the tags of rows. Throws if the master key has not been checked yet, which is a bug. */
export function requireIntegrity({ integrity }: { readonly integrity: Integrity | undefined }): Integrity {
  if (integrity === undefined) throw new Error('the database has no integrity key yet');
  return integrity;
}
