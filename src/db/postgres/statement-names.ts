/**
 * Which statements of a session are prepared on the server: those that come again, and not more than it may remember.
 * Lists of values of all lengths make texts that come only once. A prepared statement that returns all columns of a
 * table fails once a migration has added one, in the middle of a transaction perhaps: nodes of an older release must
 * not notice.
 */

const prepareAt = 3;
const maxPrepared = 300;
const maxCounted = 1000;

/** All columns, as in `select *`, `"sessions".*` and `returning *`; not `count(*)`. */
const allColumns = /(?:\bselect |\breturning |[.,] ?)\*/i;

export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** The name under which the session prepares the text; undefined if it does not. */
  nameOf(sql: string): string | undefined {
    const known = this.#names.get(sql);
    if (known !== undefined || this.#names.size >= maxPrepared || allColumns.test(sql)) return known;
    const count = (this.#counts.get(sql) ?? 0) + 1;
    if (count < prepareAt) {
      if (this.#counts.size >= maxCounted) this.#counts.clear();
      this.#counts.set(sql, count);
      return undefined;
    }
    this.#counts.delete(sql);
    const name = `s${this.#names.size}`;
    this.#names.set(sql, name);
    return name;
  }
}
