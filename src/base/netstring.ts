/**
 * Netstrings (`length in bytes:bytes,`): fields that are hashed together, encoded so that no byte can move from one
 * field to the next.
 */

/** A text in UTF-8. */
export function netstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}

/** A text that consists of single-byte characters, such as hexadecimal. */
export function asciiNetstring(text: string): string {
  return `${text.length}:${text},`;
}

/** `-` represents null. */
export function optionalNetstring(text: string | number | null): string {
  return text === null ? '-' : netstring(String(text));
}
