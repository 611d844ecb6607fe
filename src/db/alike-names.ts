/** Names that may read like another, found without reading all of them. */
import { type RawBuilder, sql } from 'kysely';

/**
 * The condition that the column `name` may read like a name whose `comparableLabel` is `comparable`: an ASCII name is
 * the same in lower case; the caller compares those beyond ASCII, which the database cannot.
 */
export function mayReadLike(comparable: string): RawBuilder<boolean> {
  return sql<boolean>`(lower(name) = ${comparable} or octet_length(name) <> length(name))`;
}
