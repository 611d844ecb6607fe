/** JSON text that carries the type of its value, for the columns of the database that hold JSON. */

declare const content: unique symbol;

/** JSON text that parses to a T. */
export type Json<T> = string & { readonly [content]: () => T };

/** A value after a round trip through JSON: each parse creates a new list, which its reader may change. */
type Parsed<T> = T extends readonly (infer Item)[] ? Item[] : T;

/** The value as JSON text. */
export function toJson<T>(value: T): Json<Parsed<T>> {
  return JSON.stringify(value) as Json<Parsed<T>>;
}

/** The value of a JSON text. Throws SyntaxError if the text is damaged. */
export function parseJson<T>(text: Json<T>): T {
  return JSON.parse(text) as T;
}

/** The value of a JSON text in a column that may be null, or `otherwise`. Throws like `parseJson`. */
export function parseJsonOr<T>(text: Json<T> | null, otherwise: NoInfer<T>): T {
  return text === null ? otherwise : parseJson(text);
}
