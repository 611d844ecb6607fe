/** Netstrings (`length in bytes:bytes,`): fields that are hashed together, so that nothing can move from one into the next. */

/** A text in UTF-8. */
export function netstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}

/** A text whose characters are bytes, such as hexadecimal. */
export function asciiNetstring(text: string): string {
  return `${text.length}:${text},`;
}

/** `-` stands for what is null. */
export function optionalNetstring(text: string | number | null): string {
  return text === null ? '-' : netstring(String(text));
}
