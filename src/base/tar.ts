/** Writes tar archives (POSIX.1-1988 ustar) of a few small files, the same bytes for the same files. */

/** Everything in a tar archive comes in records of this size. */
const record = 512;

export type TarFile = {
  /** ASCII, below 100 characters, without a directory. */
  readonly name: string;
  readonly content: Buffer;
  readonly mode: number;
};

/** The archive. Its files belong to root and were modified at `modifiedAt`, UTC milliseconds. */
export function tar(files: readonly TarFile[], modifiedAt: number): Buffer {
  const members = files.flatMap((file) => [header(file, modifiedAt), padded(file.content)]);
  return Buffer.concat([...members, Buffer.alloc(2 * record)]);
}

function header({ name, content, mode }: TarFile, modifiedAt: number): Buffer {
  const bytes = Buffer.alloc(record);
  bytes.write(name, 0, 100, 'latin1');
  const octal = (value: number, at: number, digits: number) =>
    bytes.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(content.length, 124, 11);
  octal(Math.floor(modifiedAt / 1000), 136, 11);
  // The checksum is computed as if its own field held spaces.
  bytes.fill(' ', 148, 156);
  bytes.write('0', 156, 'latin1');
  bytes.write('ustar\x0000', 257, 'latin1');
  octal(
    bytes.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  bytes.writeUInt8(0, 154);
  return bytes;
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((record - (content.length % record)) % record)]);
}
